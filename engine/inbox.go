package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/pawlhq/pawl/statemachine"
	"github.com/pawlhq/pawl/store"
)

// takeCancel takes up the requests to cancel. It reports whether the workflow
// took another course because of one.
func (a *advance) takeCancel(ctx context.Context, begun bool) (took bool, err error) {
	if a.deferred {
		return false, nil
	}
	for _, msg := range a.inbox {
		if msg.Kind != store.MessageCancel {
			continue
		}
		accepted, err := a.askCancel(ctx, msg, begun)
		if err != nil || a.deferred {
			return took, err
		}
		took = took || accepted
	}
	return took, nil
}

func (a *advance) askCancel(ctx context.Context, msg store.Message, begun bool) (accepted bool, err error) {
	cur, cmds, err := a.ask(ctx, statemachine.CancelAsked{Reason: shownBytes(msg.Payload), Begun: begun})
	if err != nil {
		return false, err
	}
	switch verdict := answerOf(cmds); verdict {
	case statemachine.CancelDeferred:
		a.deferred = true
		return false, nil
	case statemachine.CancelAccepted:
		if err := a.take(cur, cmds); err != nil {
			return false, err
		}
		a.consume(msg, string(verdict))
		return true, nil
	default:
		a.consume(msg, string(verdict))
		return false, nil
	}
}

func answerOf(cmds []statemachine.Command) statemachine.CancelVerdict {
	for _, cmd := range cmds {
		if a, ok := cmd.(statemachine.Answer); ok {
			return a.Verdict
		}
	}
	return statemachine.CancelTooLate
}

// takeSignal takes up the oldest signal that is waited for. If the wait's time
// has come, only one that was sent in time counts.
func (a *advance) takeSignal(ctx context.Context, due bool) (took bool, err error) {
	for _, msg := range a.inbox {
		late := due && msg.SentAt.After(a.job.wakeAt)
		if msg.Kind != store.MessageSignal || late || illegible(msg) || !slices.Contains(strings.Split(a.cursor.Awaits, statemachine.AwaitsSeparator), msg.Name) {
			continue
		}
		err := a.next(ctx, statemachine.Signalled{Name: msg.Name, Payload: msg.Payload})
		if _, bad := errors.AsType[*statemachine.PayloadError](err); bad {
			a.consume(msg, err.Error()) // it fits nothing, and must not be met again
			continue
		}
		if err != nil {
			return false, err
		}
		a.consume(msg, "")
		return true, nil
	}
	return false, nil
}

func (a *advance) consume(msg store.Message, answer string) {
	a.consumed = append(a.consumed, store.Consumed{MessageID: msg.ID, Answer: storable(answer)})
	var rest []store.Message
	for _, m := range a.inbox {
		if m.ID != msg.ID {
			rest = append(rest, m)
		}
	}
	a.inbox = rest
}

// settle goes on as long as messages that are there already move the workflow.
// One that has just started branches is left alone: what they are to be told
// must find them there.
func (a *advance) settle(ctx context.Context) error {
	for {
		if a.cursor.Phase == statemachine.Ended || len(a.starts) > 0 {
			return nil
		}
		cancelled, err := a.takeCancel(ctx, false)
		if err != nil {
			return err
		}
		asked, err := a.takeVerbs(ctx, a.follow.run != nil)
		if err != nil {
			return err
		}
		moved := cancelled || asked
		if a.cursor.Phase == statemachine.Waiting && a.cursor.Awaits != "" && !cancelled {
			if moved, err = a.takeSignal(ctx, false); err != nil {
				return err
			}
		}
		closed, err := a.takeBranchEnds(ctx)
		if err != nil {
			return err
		}
		if !moved && !closed {
			return nil
		}
	}
}

// takeDeadline takes up the deadline of the workflow's definition, if it has passed.
// It reports whether the workflow took another course because of it.
func (a *advance) takeDeadline(ctx context.Context, begun bool) (took bool, err error) {
	capped := a.job.due && a.cursor.Capped
	if a.cursor.Late || !capped && a.job.left > 0 {
		return false, nil
	}
	before := a.cursor
	if err := a.next(ctx, statemachine.DeadlinePassed{Begun: begun}); err != nil {
		return false, err
	}
	return a.cursor.Phase != before.Phase || a.cursor.Cause != before.Cause, nil
}
