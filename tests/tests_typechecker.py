"""The type checker behind the import hook: beartype, with the numeric tower (an int is a float)."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
