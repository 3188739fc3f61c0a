"""Operations that make datasets of others without computing an element."""

from __future__ import annotations

UNCHANGED = frozenset({"Identity", "OptionsDataset", "PrefetchDataset"})
"""Operations that change neither the elements of a dataset nor their order."""

ARRANGED = frozenset({"RepeatDataset", "SkipDataset", "TakeDataset"})
"""Operations that select or repeat elements by a number."""

BATCHED = "BatchDatasetV2"

APPLYING = frozenset({"MapDataset", "ScanDataset"})
"""Operations that apply a function to each element."""

DATASETS = frozenset({*UNCHANGED, *ARRANGED, BATCHED, *APPLYING, "TensorSliceDataset"}) - {
    "Identity"
}
"""The operations that make a dataset and compute none of its elements."""
