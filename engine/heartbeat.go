package engine

import (
	"context"
	"fmt"

	"github.com/pawlhq/pawl/store"
)

// beater keeps the progress of one attempt: a step.Beater.
type beater struct {
	advance *advance
	key     string
}

// Beat writes the progress as the owner of the workflow. The write may be repeated,
// so a lost answer is no doubt.
func (b *beater) Beat(ctx context.Context, progress []byte) error {
	a := b.advance
	g := store.Guard{ID: a.job.id, Revision: a.job.rev}
	var verdict store.Verdict
	err := retry(ctx, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, a.shell.callTimeout())
		defer cancel()
		verdict, err = a.shell.store.Beat(ctx, a.me, g, b.key, progress)
		return err
	})
	if err == nil && verdict == store.Lost {
		err = ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("keep progress of workflow %q: %w", a.job.id, err)
	}
	return nil
}

// Last reads the progress of this attempt or one before it.
func (b *beater) Last(ctx context.Context) (progress []byte, err error) {
	err = retry(ctx, func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, b.advance.shell.callTimeout())
		defer cancel()
		progress, err = b.advance.shell.store.LastBeat(ctx, b.advance.job.id, b.key)
		return err
	})
	if err == nil && isCoded(progress) { // written by a process that has a codec
		return nil, codecErrorOf(ofWorkflow(b.advance.job.id), progress)
	}
	return progress, err
}
