// Special members of a graph and its operators. Inline, each unit that copies a graph would compile
// one branch per operator and member.
#include "headroom/graph.h"
#include "headroom/op.h"

namespace headroom {

Op::Op() = default;
Op::Op(const Op& other) = default;
Op::Op(Op&& other) noexcept = default;
Op& Op::operator=(const Op& other) = default;
Op& Op::operator=(Op&& other) noexcept = default;
Op::~Op() = default;

Block::Block() = default;
Block::Block(const Block& other) = default;
Block::Block(Block&& other) noexcept = default;
Block& Block::operator=(const Block& other) = default;
Block& Block::operator=(Block&& other) noexcept = default;
Block::~Block() = default;

Graph::Graph() = default;
Graph::Graph(const Graph& other) = default;
Graph::Graph(Graph&& other) noexcept = default;
Graph& Graph::operator=(const Graph& other) = default;
Graph& Graph::operator=(Graph&& other) noexcept = default;
Graph::~Graph() = default;

}  // namespace headroom
