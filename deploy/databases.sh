#!/bin/sh
# Run once by the image of PostgreSQL, before it listens: a user and a database each for the board and for n8n.
set -eu
database() { # database NAME PASSWORD
  psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1 --username=postgres --dbname=postgres --set=name="$1" --set=password="$2" <<'SQL'
CREATE ROLE :"name" LOGIN PASSWORD :'password';
CREATE DATABASE :"name" OWNER :"name" ENCODING 'UTF8';
REVOKE CONNECT ON DATABASE :"name" FROM PUBLIC;
SQL
}
database board "$TASKBOARD_DB_PASSWORD"
database n8n "$N8N_DB_PASSWORD"
