# Writes a C++ source that holds every preset as text, with its name and aliases taken out, so that
# the binary finds a preset without parsing all of them.
#   cmake -DPRESET_FOLDER=… -DPRESET_NAMES=a;b;c -DOUTPUT=… -P EmbedPresets.cmake
set(arrays "")
set(table "")
set(number 0)
foreach(preset IN LISTS PRESET_NAMES)
  file(READ "${PRESET_FOLDER}/${preset}.json" json)
  string(JSON name GET "${json}" name)
  string(JSON alias_count LENGTH "${json}" aliases)
  set(aliases "")
  if(alias_count GREATER 0)
    math(EXPR last "${alias_count} - 1")
    foreach(i RANGE ${last})
      string(JSON alias GET "${json}" aliases ${i})
      string(APPEND aliases "\"${alias}\", ")
    endforeach()
  endif()
  string(APPEND arrays
         "constexpr std::array<std::string_view, ${alias_count}> kAliases${number}{${aliases}};\n")
  string(APPEND table
         "    EmbeddedPreset{\"${name}\", kAliases${number}, R\"preset(${json})preset\"},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from presets/models by cmake/EmbedPresets.cmake.
#include \"embedded_presets.h\"

#include <array>

namespace headroom::detail {
namespace {

${arrays}
constexpr std::array kPresets{
${table}};

}  // namespace

std::span<const EmbeddedPreset> embedded_presets() noexcept { return kPresets; }

}  // namespace headroom::detail
")
