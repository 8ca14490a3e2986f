// The frame and the colours of all pictures. Internal to src/report.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace headroom::detail {

inline constexpr double kPictureWidth = 760;

/// Light enough for dark text on light and dark pages (contrast above 7 with #1b1f24).
inline constexpr std::array<std::string_view, 10> kPictureColours{
    "#8ecae6", "#ffb703", "#a7d98b", "#f4978e", "#cdb4db",
    "#f9e07f", "#90c5b4", "#e0b089", "#b8c0ff", "#d3d3d3"};

[[nodiscard]] std::string_view picture_colour(std::size_t number) noexcept;

/// Average width of a character of 12 px.
inline constexpr double kCharacterWidth = 7;

/// A <text> at a point; `anchor` is start, middle or end.
[[nodiscard]] std::string picture_text(double x, double y, std::string_view anchor,
                                       std::string_view words);

/// The <figure> around the elements of an SVG of kPictureWidth by `height`.
[[nodiscard]] std::string picture_frame(const std::string& title, const std::string& description,
                                        double height, const std::string& elements);

}  // namespace headroom::detail
