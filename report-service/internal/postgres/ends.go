package postgres

import (
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// endQuestionSQL ends the open question of a report $1, if there is one, in the state $2.
// The caller starts the clock again.
const endQuestionSQL = `update questions set state = $2, ended_at = clock_timestamp() where report_id = $1 and state = 'open'`

// settleSQL settles the complaints about a report.
const settleSQL = `update abuse_reports set settled_at = now() where report_id = $1 and settled_at is null`

// endVerdicts queues the end of the time for verdicts on the last resolution of a report and
// of its duplicates. Where a reporter was still asked, nothing is left of it.
func endVerdicts(b *pgx.Batch, id uuid.UUID) {
	const same = `ended_at is null and (report_id = $1 or report_id in (select id from reports where duplicate_of = $1))`
	b.Queue(`delete from verdicts where given_at is null and until > now() and `+same, id)
	b.Queue(`update verdicts set ended_at = now() where given_at is not null and `+same, id)
}
