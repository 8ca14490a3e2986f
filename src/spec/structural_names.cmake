# Writes OUTPUT, the keys that the readers of SOURCES (paths separated by "|") take as sizes,
# flags, lists of layers or nested objects: a family that does not read one of them may count wrongly.

set(takers
    "(size|size_or|size_or_of_class|optional_size|count_or|layers|layers_or|flag_or|truth_or|counts|count_or_counts|list_of_counts|integers_or|sides_or|pairs|texts|expanded_patterns|object|objects|object_or_empty|expect_flag|expect_number|expect_empty)"
)
# Functions of readers that take such a key, after the reader.
set(helpers "(read_layer_flags|read_layer_numbers|read_layer_words|read_limits)")
string(REPLACE "|" ";" SOURCES "${SOURCES}")
set(names "")
foreach(source IN LISTS SOURCES)
  file(READ "${source}" text)
  # Characters that mean something in CMake's lists.
  string(REGEX REPLACE "[][;]" " " text "${text}")
  string(REGEX MATCHALL "[.>]${takers}[(][ \n]*([{][^{}]*[}]|\"[A-Za-z0-9_]+\")" calls "${text}")
  string(REGEX MATCHALL "${helpers}[(][*]?[a-z]+, \"[A-Za-z0-9_]+\"" calls_of_helpers "${text}")
  list(APPEND calls ${calls_of_helpers})
  foreach(call IN LISTS calls)
    string(REGEX MATCHALL "\"[A-Za-z0-9_]+\"" keys "${call}")
    list(APPEND names ${keys})
  endforeach()
endforeach()
list(REMOVE_DUPLICATES names)
list(SORT names)
list(JOIN names ",\n    " names)
set(text
    "#include \"structural_names.h\"

#include <algorithm>
#include <array>

namespace headroom::detail {
namespace {

constexpr auto kReadNames = std::to_array<std::string_view>({
    ${names}});

static_assert(std::ranges::is_sorted(kReadNames));

}  // namespace

bool is_read_by_some_family(std::string_view key) {
  return std::ranges::binary_search(kReadNames, key);
}

}  // namespace headroom::detail
")
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "${text}" @ONLY)
