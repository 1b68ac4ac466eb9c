// Package crdb has the one function that Dex's store in CockroachDB calls, which tests do not use.
package crdb

import (
	"database/sql"
	"errors"
)

// ExecuteTx says that it is not there.
func ExecuteTx(*sql.DB, func(*sql.Tx) error) error {
	return errors.New("there is no CockroachDB")
}
