#include "fuzz_target.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "temporary_file.h"

namespace headroom::test {

void inspect_bytes(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file = temporary_file(data, size, "input");
  (void)accepts([&] {
    const Inspection inspection = inspect(file.string());
    (void)render(inspection, {});
    (void)render(inspection, {Format::json, Detail::summary, 0, Colour::off});
  });
}

}  // namespace headroom::test
