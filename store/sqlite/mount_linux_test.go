package sqlite

import (
	"fmt"
	"syscall"
	"testing"
)

// mountSmall mounts a file system of size bytes at dir until the end of the
// test, if it may.
func mountSmall(t *testing.T, dir string, size int) bool {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		return false
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) }) //nolint:errcheck // the directory goes too
	return true
}
