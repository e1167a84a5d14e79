package statemachine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pawlhq/pawl/step"
)

// batch prints a label for each of its parcels.
type batch struct {
	Parcels []int    `json:"parcels"`
	Labels  []string `json:"labels,omitempty"`
}

func (b batch) parcels() []int { return b.Parcels }
func (b batch) work() bool     { return len(b.Labels) < 99 }
func (b *batch) labelled(i, parcel int, label string) {
	b.Labels = append(b.Labels, fmt.Sprint(i, ":", parcel, ":", label))
}

func printing(each func(EachTask[batch]) EachTask[batch]) Definition[batch] {
	open := step.Call("open", call[[]int, string]).With(once).Undo(step.UndoCall("close", undoCall[[]int, string]).With(once))
	label := step.Call("print", call[int, string]).With(once).Undo(step.UndoCall("void", undoCall[int, string]).With(once))
	return Definition[batch]{
		Name: "printing", Version: 1, Start: charging,
		States: States[batch]{
			charging:  Do(open, batch.parcels, nil).Then(reserving),
			reserving: each(Each(batch.parcels, label, (*batch).labelled)).Then(delivered),
		},
		Ends:      Ends{delivered: Completed, cancelled: RolledBack},
		OnFailure: cancelled,
	}
}

func atMost(n int) func(EachTask[batch]) EachTask[batch] {
	return func(t EachTask[batch]) EachTask[batch] { return t.AtMost(n) }
}

func tolerant(n, k int) func(EachTask[batch]) EachTask[batch] {
	return func(t EachTask[batch]) EachTask[batch] { return t.AtMost(n).Tolerate(k) }
}

const fiveParcels = `{"parcels":[10,20,30,40,50]}`

// lanes leads five parcels to their lanes.
func lanes(t testing.TB, d Definition[batch]) (root *play, lanes []*play) {
	m := compile(t, d)
	root = begin(t, m, fiveParcels)
	for _, c := range branches(root.done(`"o"`)) {
		lanes = append(lanes, &play{t, m, c})
	}
	return root, lanes
}

func printItem(item int, in string) RunStep {
	return RunStep{Spec: step.Spec{Name: "print"}, Key: step.NewItemKey("w", "print", item, 1), In: []byte(in)}
}

func TestItemsAreDealtToLanes(t *testing.T) {
	t.Parallel()
	root, ls := lanes(t, printing(atMost(2)))
	root.at(Waiting, reserving, Mark{})
	require.Equal(t, 2, root.c.Open)
	require.Len(t, ls, 2)
	require.JSONEq(t, `[10,30,50]`, string(ls[0].c.Data))
	require.JSONEq(t, `[20,40]`, string(ls[1].c.Data))
	require.Equal(t, "reserving/1/2", ls[1].c.Branch)
	wants(t, ls[1].take(Resumed{}), printItem(2, "20"))
	wants(t, ls[1].take(StepDone{Out: []byte(`"b"`)}),
		Record{Step: "print", Group: 1, Item: 2, Outcome: Done, Attempt: 1, In: []byte("20"), Out: []byte(`"b"`)},
		printItem(4, "40"))
	ls[1].at(Running, reserving, first("print"))
	wants(t, ls[1].take(StepDone{Out: []byte(`"d"`)})[1:], EndBranch{BranchEnded{Path: "reserving/1/2"}})
	ls[1].at(Ended, reserving, Mark{})
}

func TestNoMoreLanesThanItems(t *testing.T) {
	t.Parallel()
	_, ls := lanes(t, printing(atMost(0)))
	require.Len(t, ls, 5)
	require.Equal(t, 100, DefaultAtMost)
}

// runLanes leads all lanes to their ends, the last one first.
func runLanes(ls []*play) (records []Past, ends []BranchEnded) {
	for i := len(ls) - 1; i >= 0; i-- {
		for ls[i].c.Phase != Ended {
			out := strconv.Quote("l" + strconv.Itoa(ls[i].c.Item))
			cmds := ls[i].take(StepDone{Out: []byte(out)})
			records = append(records, recordsOf(cmds)...)
			if end, ok := cmds[len(cmds)-1].(EndBranch); ok {
				ends = append(ends, end.Event)
			}
		}
	}
	return records, ends
}

func TestItemsAreMergedInOrder(t *testing.T) {
	t.Parallel()
	root, ls := lanes(t, printing(atMost(2)))
	records, ends := runLanes(ls)
	root.take(ends[0])
	require.ErrorIs(t, root.refuses(ends[1]), ErrNeedsPast)
	root.c.Past, root.c.PastKnown = records, true
	root.take(ends[1])
	root.at(Ended, delivered, Mark{})
	var b batch
	require.NoError(t, json.Unmarshal(root.c.Data, &b))
	require.Equal(t, []string{"0:10:l1", "1:20:l2", "2:30:l3", "3:40:l4", "4:50:l5"}, b.Labels)
	require.Zero(t, root.c.Lanes)
}

// TestItemsAreUndoneByTheirKeys, newest first, whichever lane did them.
func TestItemsAreUndoneByTheirKeys(t *testing.T) {
	t.Parallel()
	root, ls := lanes(t, printing(atMost(2)))
	wants(t, root.take(CancelAsked{}), Answer{CancelAccepted}, StopBranch{"reserving/1/1", ""}, StopBranch{"reserving/1/2", ""})
	done := recordsOf(ls[0].take(StepDone{Out: []byte(`"a"`)}), ls[1].take(StepDone{Out: []byte(`"b"`)}))
	ends := []Command{}
	for _, l := range ls {
		cmds := l.take(CancelAsked{Begun: true})
		done = append(done, recordsOf(cmds)...)
		ends = append(ends, cmds[len(cmds)-1])
	}
	root.c.Past, root.c.PastKnown = done, true
	root.take(ends[0].(EndBranch).Event)
	cmds := root.take(ends[1].(EndBranch).Event)
	var items []int
	for root.c.Phase != Ended {
		run := cmds[len(cmds)-1].(RunStep)
		require.Equal(t, step.NewItemKey("w", "void", root.c.Item, 1), run.Key)
		require.Equal(t, step.NewItemKey("w", "print", root.c.Item, 1), run.Undoes.Key)
		require.Equal(t, strconv.Itoa(10*root.c.Item), string(run.Undoes.In))
		items = append(items, root.c.Item)
		cmds = root.take(StepDone{})
	}
	require.Equal(t, []int{4, 3, 2, 1}, items)
	require.Equal(t, Record{Step: "void", Group: 1, Item: 1, Outcome: Done, Attempt: 1}, cmds[0])
}

func TestFirstFailedItemStopsTheOthers(t *testing.T) {
	t.Parallel()
	root, ls := lanes(t, printing(atMost(2)))
	cmds := ls[0].take(StepFailed{Error: "no", Rejected: true})
	require.Equal(t, EndBranch{BranchEnded{Path: "reserving/1/1", Cause: Refused, Reason: "step print was refused: no", Failures: 1}}, cmds[1])
	wants(t, root.take(cmds[1].(EndBranch).Event), StopBranch{"reserving/1/1", "step print was refused: no"}, StopBranch{"reserving/1/2", "step print was refused: no"})
	require.Equal(t, Refused, root.c.Cause)
}

func TestToleratedFailures(t *testing.T) {
	t.Parallel()
	for _, failing := range []int{2, 3} { // items that fail, of which two are tolerated
		t.Run(strconv.Itoa(failing), func(t *testing.T) {
			t.Parallel()
			root, ls := lanes(t, printing(tolerant(2, 2)))
			var records []Past
			var ends []BranchEnded
			failed := 0
			for i := range 3 { // both lanes in turn
				for _, l := range ls {
					if l.c.Phase == Ended {
						continue
					}
					var e Event = StepDone{Out: []byte(`"x"`)}
					if failed < failing && i > 0 {
						e, failed = StepFailed{Error: "no", Rejected: true}, failed+1
					}
					cmds := l.take(e)
					records = append(records, recordsOf(cmds)...)
					if end, ok := cmds[len(cmds)-1].(EndBranch); ok {
						ends = append(ends, end.Event)
					}
				}
			}
			root.take(ends[0])
			root.c.Past, root.c.PastKnown = records, true
			root.take(ends[1])
			if failing > 2 {
				root.at(RollingBack, reserving, first("void"))
				require.Equal(t, Exhausted, root.c.Cause)
				require.Equal(t, "3 items failed, the last: step print was refused: no", root.c.Reason)
				return
			}
			root.at(Ended, delivered, Mark{})
			require.Empty(t, root.c.Cause)
			require.JSONEq(t, `{"parcels":[10,20,30,40,50],"labels":["0:10:x","1:20:x","4:50:x"]}`, string(root.c.Data))
		})
	}
}

// TestNoItems: the state is left, in a transition of its own, so that a loop of
// such states is no endless call.
func TestNoItems(t *testing.T) {
	t.Parallel()
	d := printing(atMost(2))
	d.States[reserving] = Each(batch.parcels, step.Call("print", call[int, string]).NoUndo("x"), nil).Then(weighing)
	d.States[weighing] = If(batch.work, reserving, delivered)
	p := begin(t, compile(t, d), `{"parcels":[]}`)
	cmds := p.done(`"o"`)
	require.Equal(t, Wake{}, cmds[len(cmds)-1])
	for range 3 {
		p.at(Running, reserving, Mark{})
		wants(t, p.take(Resumed{}), Wake{})
	}
	p.c.PastKnown = true
	p.take(CancelAsked{})
	p.at(Ended, cancelled, Mark{})
}

func TestUnknownLane(t *testing.T) {
	t.Parallel()
	root, _ := lanes(t, printing(atMost(2)))
	for _, path := range []string{"reserving/1/0", "reserving/1/3", "reserving/1/01", "reserving/2/1", "reserving/1/print"} {
		root.passesOver(BranchEnded{Path: path})
	}
}

func TestFaultsOfEach(t *testing.T) {
	t.Parallel()
	label := step.Call("print", call[int, string])
	for _, c := range []struct {
		task  EachTask[batch]
		fault string
	}{
		{Each(batch.parcels, label, nil), `step "print" has an effect`},
		{Each[batch, int, string](nil, label.NoUndo("x"), nil), `items of step print is nil`},
		{Each(batch.parcels, label.Pivot(), nil), `the pivot "print" is the step of an Each`},
		{Each(batch.parcels, label.NoUndo("x"), nil).AtMost(-1), `AtMost -1: at least 1`},
		{Each(batch.parcels, label.NoUndo("x"), nil).Tolerate(-1), `Tolerate -1: not below 0`},
		{Each(batch.parcels, label.NoUndo("x").As("open"), nil), `uses the step name "open"`},
	} {
		d := printing(atMost(1))
		d.States[reserving] = c.task.Then(delivered)
		require.ErrorContains(t, d.Validate(), c.fault)
	}
	d := printing(tolerant(1, 1))
	d.States[charging] = Do(step.Call("send", call[[]int, string]).Pivot(), batch.parcels, nil).Then(reserving)
	require.ErrorContains(t, d.Validate(), `tolerates failures, but lies behind the pivot "send"`)
	require.Contains(t, printing(atMost(1)).Mermaid(), "reserving / each print (call, undo void)\n")
}

func TestFaultyItems(t *testing.T) {
	t.Parallel()
	d := printing(atMost(1))
	d.States[reserving] = Each(func(batch) []int { panic("no") }, step.Call("print", call[int, string]).NoUndo("x"), nil).Then(delivered)
	p := begin(t, compile(t, d), fiveParcels)
	require.Len(t, p.done(`"o"`), 1)
	p.at(Held, reserving, Mark{})
	require.Equal(t, `state "reserving": items of step "print": panicked: no`, p.c.Reason)
}

// TestEveryReachableLane is TestEveryReachableFamily for three items in two
// lanes, of which one may be lost.
func TestEveryReachableLane(t *testing.T) {
	t.Parallel()
	m := compile(t, printing(tolerant(2, 1)))
	exploreFamilies(t, m, `{"parcels":[10,20,30]}`, func(f family) {
		var b batch
		require.NoError(t, json.Unmarshal(f.root.Data, &b))
		require.GreaterOrEqual(t, len(b.Labels), 2, "one at most is lost")
	})
}
