/* headroom for C, and for every language that calls C: JSON in, JSON out.
 *
 *   char* answer = headroom_run("{\"command\": \"analyze\", \"model\": \"bert-base\"}");
 *   puts(answer);  // {"status":0,"messages":[],"report":{…, "parameters": {"total": 109482240, …
 *   headroom_free(answer);
 *
 * A request is an object. "command" is a command of the program ("analyze", "fit", "machines
 * show"); every other key is one of its arguments or options, by its name without dashes: "model",
 * "seq", "kv_dtype" or "kv-dtype". `headroom COMMAND --help` lists them. A value is
 *
 *   a string or number   the option's value
 *   true                 a flag, or an option whose value may be left out
 *   false, null          as if the key was not there
 *   an array             several arguments, or the values of an option that takes a list
 *   an object            for an argument that takes a model: the content of its config.json
 *
 * An answer is an object:
 *
 *   "status"    exit status of the program: 0 fine, 1 a verdict failed or no plan fits, 2 usage or
 *               bad input, 3 a resource is missing, 4 a bug in headroom
 *   "messages"  notes and warnings, a list of strings
 *   "report"    the report, by the command's JSON Schema, for requests of status 0 and 1; or
 *   "text"      the report as text, for commands without JSON, for other values of "format", and
 *               the text of "help"; neither if "output" names a file, which then has the report
 *   "error"     {"code", "message", "where", "hint"}, for the statuses from 2 on, and in place of
 *               a report that would have no plan (status 1, code "no_plan_fits")
 *
 * All functions may be called from several threads at once. None throws an exception or ends the
 * process. Reports that run a model (measure, compare, calibrate) use all processors: two at once
 * disturb each other's times.
 */
#ifndef HEADROOM_HEADROOM_C_H
#define HEADROOM_HEADROOM_C_H

#if defined(__GNUC__)
#define HEADROOM_API __attribute__((visibility("default")))
#else
#define HEADROOM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Runs `request`, UTF-8 text that ends with a zero byte. The answer is UTF-8 text that the caller
 * passes to headroom_free; a null pointer if there was no memory for it. */
HEADROOM_API char* headroom_run(const char* request);

/* Frees an answer. A null pointer is allowed. */
HEADROOM_API void headroom_free(char* answer);

/* The version of the library, such as "0.1.0". The text lives as long as the library. */
HEADROOM_API const char* headroom_version(void);

#ifdef __cplusplus
}
#endif

#endif
