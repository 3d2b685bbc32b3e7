"""What the dialect can do, so that the suite tests it: all that PostgreSQL has and the suite asks for.

Left closed, because PostgreSQL has no such thing or does otherwise, whatever the driver:
empty_inserts_executemany, fetch_percent, foreign_keys_reflect_as_index, unique_index_reflect_as_unique_constraints,
non_updating_cascade, window_range_non_numeric, dbapi_lastrowid and the like, implicit_default_schema,
denormalized_names, nvarchar_types, legacy_unconditional_json_extract, json_deserializer_binary.

Left closed for another reason: computed_columns, because SQLAlchemy warns of them on servers before 18, and its suite
takes warnings for errors.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_OPEN = """
array_type autocommit boolean_col_expressions
check_constraint_reflection column_collation_reflection comment_reflection comment_reflection_full_unicode
constraint_comment_reflection create_or_replace_view create_table_as create_temp_table_as cross_schema_fk_reflection
ctes ctes_on_dml ctes_with_update_delete ctes_with_values
date_historic datetime_historic datetime_interval datetime_literals datetime_timezone deferrable_fks
delete_from except_ expression_server_defaults fetch_expression fetch_first fetch_no_order_by
fetch_offset_with_options fetch_ties
fk_constraint_option_reflection_ondelete_noaction fk_constraint_option_reflection_ondelete_restrict
fk_constraint_option_reflection_onupdate_restrict
foreign_key_constraint_option_reflection_ondelete foreign_key_constraint_option_reflection_onupdate
has_temp_table identity_columns identity_columns_standard index_ddl_if_exists index_reflects_included_columns
indexes_with_expressions infinity_floats inline_check_constraint_reflection intersect isolation_level json_type
materialized_views mod_operator_as_percent_sign nullsordering order_by_label_with_expression percent_schema_names
precision_numerics_enotation_large precision_numerics_enotation_small precision_numerics_many_significant_digits
precision_numerics_retains_significant_digits recursive_fk_cascade reflect_indexes_with_expressions
reflect_table_options reflect_tables_no_columns reflects_pk_names regexp_match regexp_replace
repeated_column_foreign_keys savepoints schema_create_delete server_defaults skip_autocommit_rollback
supports_bitwise_and supports_bitwise_not supports_bitwise_or supports_bitwise_shift supports_bitwise_xor
supports_distinct_on table_ddl_if_exists table_value_constructor temp_table_comment_reflection temp_table_names
temporary_views time_timezone timestamp_microseconds tuple_in two_phase_transactions unicode_ddl update_from
unique_constraints_reflect_as_index uuid_data_type views window_functions window_range window_range_numeric
""".split()


class Requirements(SuiteRequirements):
    """PostgreSQL's."""

    @property
    def async_dialect(self) -> Any:
        return exclusions.only_if(lambda config: config.db.dialect.is_async)

    @property
    def default_schema_name_switch(self) -> Any:
        return exclusions.open()

    def get_order_by_collation(self, config: Any) -> str:
        """One that every server has."""
        return "POSIX"

    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        """Those that the dialect names."""
        return {"default": "READ COMMITTED", "supported": config.db.dialect.get_isolation_level_values(None)}


for _name in _OPEN:
    assert hasattr(SuiteRequirements, _name), _name
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
