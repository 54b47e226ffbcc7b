#include "sheave/cache/row_ring.h"

#include <algorithm>

namespace sheave {

int RowRing::first_seen(int position) const {
  return window > 0 ? std::max(0, position - window + 1) : 0;
}

int RowRing::columns_for(int tokens) const {
  const int end = offset + tokens;
  const int needed = end - first_seen(offset);
  if (end <= columns || needed <= columns) {
    return columns;
  }
  return (needed + kStep - 1) / kStep * kStep;
}

std::array<kernels::ColumnRange, 2> RowRing::ranges(int begin, int end) const {
  if (begin >= end) {
    return {};
  }
  const int first = begin % columns;
  const int count = end - begin;
  const int before_end = std::min(count, columns - first);
  return {{{first, first + before_end}, {0, count - before_end}}};
}

void RowRing::advance(int tokens) {
  offset += tokens;
  oldest = std::max(oldest, offset - columns);
}

} // namespace sheave
