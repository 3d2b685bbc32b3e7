SELECT 'v', NULL, pg_catalog.current_setting('server_version_num'), NULL, NULL
