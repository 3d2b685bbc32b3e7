"""How names of tables and columns speak for a loop, by the rules of core/ledger/src/analyze/relations.rs."""

from __future__ import annotations

# How names speak for a loop (relations.rs): not at all; one key of one table; one of the two names the other's table.
NONE, SAME, REFERS = 0, 1, 2
GENERIC = frozenset(["id", "pk", "uuid", "guid", "key", "oid"])
OF_KEYS = frozenset(["id", "ids", "pk", "fk", "uuid", "guid", "key", "ptr", "ref"])


def relation(lists: list[str], source: str, reads: list[str], target: str) -> int:
    """How the result's column `source` speaks for the column `target` that is compared with the parameter."""
    of_source, of_target = words(source), words(target)
    is_generic_source = len(of_source) == 1 and of_source[0] in GENERIC
    is_generic_target = len(of_target) == 1 and of_target[0] in GENERIC
    if is_generic_source and is_generic_target:
        return SAME if of_source == of_target and set(lists) & set(reads) else NONE
    if not is_generic_source and not is_generic_target:
        if of_source == of_target or bare(of_source) == bare(of_target):
            return REFERS
    if not is_generic_target and any(has_name(of_target, table) for table in lists):
        return REFERS
    if not is_generic_source and any(has_name(of_source, table) for table in reads):
        return REFERS
    return NONE


def has_name(column: list[str], table: str) -> bool:
    """Whether a column's name has a table's in it, as `author_id` has that of `authors` or `shop_author`."""
    own, table_words = bare(column), words(table)
    if not own:
        return False
    tails = (table_words[at:] for at in range(len(table_words)))
    return any(len(own) >= len(tail) and tail in (own[-len(tail) :], own[: len(tail)]) for tail in tails)


def bare(column: list[str]) -> list[str]:
    """The words of a name that do not only say that it is a key."""
    end = len(column)
    while end > 0 and column[end - 1] in OF_KEYS:
        end -= 1
    begin = 0
    while begin < end and column[begin] in OF_KEYS:
        begin += 1
    return column[begin:end]


def words(name: str) -> list[str]:
    """The words of a name, in lower case and in the singular, without the numbers that mappers add (`author_id2_0_`)."""
    found: list[str] = []
    was_lower = is_open = False
    for character in name:
        if not character.isalpha():
            is_open = was_lower = False
            continue
        # `authorId` is two words.
        if not is_open or (was_lower and character.isupper()):
            found.append("")
        was_lower = character.islower()
        is_open = True
        found[-1] += character.lower()
    return [singular(word) for word in found]


def singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    stem = word[:-1]
    if word.endswith("s") and len(stem) > 2 and not stem.endswith(("s", "u")):
        return stem
    return word
