"""Where the names in a recipe are looked up: among all plugins, or as whoever wrote them knew them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from grpo_core.plugins.catalog import Catalog
from grpo_core.plugins.namespace import CORE_NAMESPACE, Namespace

__all__ = ["Names"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The catalog, and who wrote what."""

    catalog: Catalog
    """All components."""
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    """Dotted path -> the namespace of whoever wrote the value."""
    written: Collection[str] = ()
    """Dotted paths that somebody set, in a namespace or not."""

    def at(self, *paths: str) -> Catalog:
        """Where a name is looked up that stands at the first of these paths that is set."""
        path = next((path for path in paths if path in self.written), paths[0])
        return self.catalog.within(self.namespaces.get(path))

    def at_default(self, path: str) -> Catalog:
        """The same, for a setting with a default: what nobody set, core did."""
        return self.at(path) if path in self.written else self.catalog.within(CORE_NAMESPACE)
