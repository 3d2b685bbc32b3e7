-- Whether a function of a user may open, move or close a cursor of the session by its name, as far as its source tells.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_proc AS p
  WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND p.prosrc OPERATOR(pg_catalog.~*)
      '[[:<:]](refcursor|cursor|fetch|move|open|close|cursor_to_xml|cursor_to_xmlschema|current[[:space:]]+of)[[:>:]]'
      ::pg_catalog.text
)::pg_catalog.text
