-- Whether a function of a user may take a lock that conflicts with a reader's, as far as its source tells: a trigger may
-- run it wherever rows are written. A body of standard SQL (`BEGIN ATOMIC`) has no source, and holds no such statement.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_proc AS p
  WHERE p.oid OPERATOR(pg_catalog.>=) 16384::pg_catalog.oid
    AND p.prosrc OPERATOR(pg_catalog.~*)
      '[[:<:]](lock|alter|create|drop|truncate|reindex|cluster|refresh|execute|do|call)[[:>:]]'::pg_catalog.text
)::pg_catalog.text
