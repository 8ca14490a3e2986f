/* Uses only the installed C API. */
#include <headroom/headroom_c.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char* answer = headroom_run("{\"command\": \"analyze\", \"model\": \"bert-base\", \"seq\": 128}");
  const int as_published = answer != NULL && strstr(answer, "\"total\": 109482240") != NULL;
  puts(answer == NULL ? "no answer" : answer);
  headroom_free(answer);
  return as_published ? 0 : 1;
}
