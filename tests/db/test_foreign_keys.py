"""Removing a row looks for what refers to it: without an index, each look would read a whole table."""

from sqlalchemy import create_engine, inspect

from board.db.engine import normal_url


def test_every_foreign_key_leads_an_index(database_url: str) -> None:
    engine = create_engine(normal_url(database_url))
    seen = 0
    for table in inspect(engine).get_table_names():
        there = inspect(engine)
        leading = {index["column_names"][0] for index in there.get_indexes(table)}
        leading |= {unique["column_names"][0] for unique in there.get_unique_constraints(table)}
        leading.add(there.get_pk_constraint(table)["constrained_columns"][0])
        for key in there.get_foreign_keys(table):
            if key["referred_table"] == "users":  # few, and never removed
                continue
            assert key["constrained_columns"][0] in leading, (table, key["constrained_columns"])
            seen += 1
    engine.dispose()
    assert seen >= 8
