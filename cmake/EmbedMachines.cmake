# Writes a C++ source that holds every machine of the catalogue as text.
#   cmake -DMACHINE_FOLDER=… -DMACHINES=a;b;c -DOUTPUT=… -P EmbedMachines.cmake
set(table "")
foreach(machine IN LISTS MACHINES)
  file(READ "${MACHINE_FOLDER}/${machine}.json" json)
  string(APPEND table "    std::string_view(R\"machine(${json})machine\"),\n")
endforeach()
file(WRITE "${OUTPUT}" "// Generated from presets/machines by cmake/EmbedMachines.cmake.
#include \"embedded_machines.h\"

#include <array>

namespace headroom::detail {
namespace {

constexpr std::array kMachines{
${table}};

}  // namespace

std::span<const std::string_view> embedded_machines() noexcept { return kMachines; }

}  // namespace headroom::detail
")
