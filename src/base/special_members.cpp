// Special members of the specs. Inline, each unit that copies a ModelSpec would compile all of
// them.
#include "headroom/attention_spec.h"
#include "headroom/layer_spec.h"
#include "headroom/model_spec.h"

namespace headroom {

AttentionSpec::AttentionSpec() = default;
AttentionSpec::AttentionSpec(const AttentionSpec& other) = default;
AttentionSpec::AttentionSpec(AttentionSpec&& other) noexcept = default;
AttentionSpec& AttentionSpec::operator=(const AttentionSpec& other) = default;
AttentionSpec& AttentionSpec::operator=(AttentionSpec&& other) noexcept = default;
AttentionSpec::~AttentionSpec() = default;

StackSpec::StackSpec() = default;
StackSpec::StackSpec(const StackSpec& other) = default;
StackSpec::StackSpec(StackSpec&& other) noexcept = default;
StackSpec& StackSpec::operator=(const StackSpec& other) = default;
StackSpec& StackSpec::operator=(StackSpec&& other) noexcept = default;
StackSpec::~StackSpec() = default;

TowerSpec::TowerSpec() = default;
TowerSpec::TowerSpec(const TowerSpec& other) = default;
TowerSpec::TowerSpec(TowerSpec&& other) noexcept = default;
TowerSpec& TowerSpec::operator=(const TowerSpec& other) = default;
TowerSpec& TowerSpec::operator=(TowerSpec&& other) noexcept = default;
TowerSpec::~TowerSpec() = default;

ModelSpec::ModelSpec() = default;
ModelSpec::ModelSpec(const ModelSpec& other) = default;
ModelSpec::ModelSpec(ModelSpec&& other) noexcept = default;
ModelSpec& ModelSpec::operator=(const ModelSpec& other) = default;
ModelSpec& ModelSpec::operator=(ModelSpec&& other) noexcept = default;
ModelSpec::~ModelSpec() = default;

}  // namespace headroom
