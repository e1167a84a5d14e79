// Package postgres keeps workflows in PostgreSQL, version 14 or newer.
package postgres
