package audit

import "slices"

// An Action is what an operator did, or what a service found out for operators.
type Action string

// The actions. Actions has them all.
const (
	Discard         Action = "discard" // of dead letters
	Restore         Action = "restore"
	Edit            Action = "edit"
	Note            Action = "note" // on a group of dead letters
	NoteRemoved     Action = "note_removed"
	Replay          Action = "replay"
	ReplayPaused    Action = "replay_paused"
	ReplayRunning   Action = "replay_running"
	ReplayCancelled Action = "replay_cancelled"

	ReleaseDelayed Action = "release_delayed"
	CancelDelayed  Action = "cancel_delayed"

	ChangePool       Action = "change_pool"
	QueueLost        Action = "queue_lost" // by the service that reads it
	QueueRepublished Action = "queue_republished"
	LossClose        Action = "loss_close" // of messages that a group has not found

	Appearance     Action = "appearance" // of the city
	Setup          Action = "setup"      // what an operator ticked in the list of what a city needs
	WebhookCreate  Action = "webhook_create"
	WebhookChange  Action = "webhook_change"
	WebhookDelete  Action = "webhook_delete"
	WebhookRotate  Action = "webhook_rotate"
	WebhookEnable  Action = "webhook_enable"
	WebhookDisable Action = "webhook_disable"
	WebhookTest    Action = "webhook_test"
	WebhookResend  Action = "webhook_resend"
	WebhookRecover Action = "webhook_recover"
	Open311Create  Action = "open311_create"
	Open311Change  Action = "open311_change"
	Open311Delete  Action = "open311_delete"
	Open311Decide  Action = "open311_decide"

	SchedulePause  Action = "schedule_pause"
	ScheduleResume Action = "schedule_resume"
	ScheduleRun    Action = "schedule_run"
)

var actions = []Action{
	Discard, Restore, Edit, Note, NoteRemoved, Replay, ReplayPaused, ReplayRunning, ReplayCancelled,
	ReleaseDelayed, CancelDelayed,
	ChangePool, QueueLost, QueueRepublished, LossClose, Appearance, Setup,
	WebhookCreate, WebhookChange, WebhookDelete, WebhookRotate, WebhookEnable, WebhookDisable, WebhookTest, WebhookResend, WebhookRecover,
	Open311Create, Open311Change, Open311Delete, Open311Decide,
	SchedulePause, ScheduleResume, ScheduleRun,
}

// Actions returns all actions. Write refuses others, so that the console has words
// for whatever is written.
func Actions() []Action { return slices.Clone(actions) }
