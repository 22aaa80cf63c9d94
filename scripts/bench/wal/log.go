package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cityconnect/cityconnect/scripts/internal/proc"
)

// A cost is what one event costs.
type cost struct {
	wal    [2]float64 // bytes in the log of each database, without images of pages
	images float64    // bytes of these in both
	cpu    float64    // µs of the services' sessions
	parts  []part
}

// A part is what the records of one kind cost, of one table or index.
type part struct {
	of, record           string
	records, wal, images float64
}

func (c *cost) add(o cost, share float64) {
	for i := range c.wal {
		c.wal[i] += share * o.wal[i]
	}
	c.images += share * o.images
	c.cpu += share * o.cpu
}

func (c *cost) print() {
	slices.SortFunc(c.parts, func(a, b part) int { return cmp.Compare(b.wal, a.wal) })
	for _, p := range c.parts {
		if p.wal >= *detail {
			fmt.Printf("%7.0f bytes in %5.2f records, images %6.0f  %-32s %s\n", p.wal, p.records, p.images, p.record, p.of)
		}
	}
}

// meters are where the log ends, and what each session has used so far.
type meters struct {
	lsn string
	cpu map[int]time.Duration // by process
}

// meters has the log written before it reads where it ends.
func (c *city) meters(ctx context.Context) (m meters, err error) {
	if _, err = c.databases[0].Exec(ctx, `select pg_logical_emit_message(true, 'bench', '')`); err != nil {
		return m, err
	}
	var pids []int
	err = c.databases[0].QueryRow(ctx, `
		select pg_current_wal_flush_lsn()::text, array(
			select pid from pg_stat_activity where datname = any($1) and application_name <> '')`, c.names()).Scan(&m.lsn, &pids)
	if err != nil {
		return m, fmt.Errorf("read where the log ends: %w", err)
	}
	m.cpu = make(map[int]time.Duration, len(pids))
	for _, pid := range pids {
		m.cpu[pid], _ = proc.CPU(pid)
	}
	return m, nil
}

func (c *city) names() (names []string) {
	for _, db := range c.databases {
		names = append(names, db.Config().ConnConfig.Database)
	}
	return names
}

// since returns what each of the events has cost since before.
func (c *city) since(ctx context.Context, before meters) (cost, error) {
	now, err := c.meters(ctx)
	if err != nil {
		return cost{}, err
	}
	n := float64(*events)
	var one cost
	for pid, used := range now.cpu { // a session that began since has none before
		one.cpu += float64((used - before.cpu[pid]).Microseconds()) / n
	}
	// A commit belongs to the database of its transaction's other records.
	rows, err := c.databases[0].Query(ctx, `
		with record as materialized (
			select resource_manager || ' ' || record_type as kind, xid::text, record_length - fpi_length as wal, fpi_length as images,
				(regexp_match(block_ref, 'rel \d+/(\d+)/'))[1]::oid as database, (regexp_match(block_ref, 'rel \d+/\d+/(\d+)'))[1]::oid as node
			from pg_get_wal_records_info($1::pg_lsn, $2::pg_lsn)
		), transaction as (
			select distinct xid, database from record where xid <> '0' and database <> 0
		)
		select place - 1, coalesce(node, 0), kind, count(*), sum(wal), sum(images)
		from (
			select kind, wal, images, database, node from record where database <> 0
			union all
			select kind, wal, images, t.database, null from record r join transaction t using (xid) where r.database is null
		) all_records join pg_database d on d.oid = database join unnest($3::text[]) with ordinality as n (name, place) on n.name = d.datname
		group by place, node, kind`, before.lsn, now.lsn, c.names())
	if err != nil {
		return one, fmt.Errorf("read the log: %w", err)
	}
	var database int
	var node uint32
	var kind string
	var count, wal, images int64
	type place struct {
		database int
		node     uint32
	}
	places := make(map[place][]part)
	for rows.Next() {
		if err := rows.Scan(&database, &node, &kind, &count, &wal, &images); err != nil {
			return one, err
		}
		at := place{database, node}
		places[at] = append(places[at], part{record: kind, records: float64(count) / n, wal: float64(wal) / n, images: float64(images) / n})
		one.wal[database] += float64(wal) / n
		one.images += float64(images) / n
	}
	if err := rows.Err(); err != nil {
		return one, fmt.Errorf("read the log: %w", err)
	}
	for at, parts := range places {
		name := "(transactions)"
		if at.node != 0 {
			err := c.databases[at.database].QueryRow(ctx, `
				select coalesce(min(relname), '(gone)') from pg_class where pg_relation_filenode(oid) = $1`, at.node).Scan(&name)
			if err != nil {
				return one, fmt.Errorf("name a table of the log: %w", err)
			}
		}
		for _, p := range parts {
			p.of = []string{"reports: ", "notifications: "}[at.database] + name
			one.parts = append(one.parts, p)
		}
	}
	return one, nil
}
