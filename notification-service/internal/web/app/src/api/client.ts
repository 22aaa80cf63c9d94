/** The two services, as their OpenAPI documents describe them. */
import createClient from 'openapi-fetch';

import type { components as NotificationSchemas, paths as NotificationPaths } from './notification.gen';
import type { components as ReportSchemas, paths as ReportPaths } from './report.gen';

export type Report = ReportSchemas['schemas']['Report'];
export type Figures = ReportSchemas['schemas']['Figures'];
export type GuestRules = ReportSchemas['schemas']['GuestsNow'];
export type Outlook = ReportSchemas['schemas']['Outlook'];
export type NewReport = ReportSchemas['schemas']['NewReport'];
export type Asset = ReportSchemas['schemas']['Asset'];
export type AssetLayer = ReportSchemas['schemas']['AssetLayer'];
export type Photo = ReportSchemas['schemas']['Photo'];
export type Comment = ReportSchemas['schemas']['Comment'];
export type Category = ReportSchemas['schemas']['Category'];
export type Status = ReportSchemas['schemas']['Status'];
export const STATUSES: readonly Status[] = ['pending', 'in_progress', 'resolved', 'rejected'];
export type Transition = ReportSchemas['schemas']['Transition'];
export type MapPoints = ReportSchemas['schemas']['MapPoints'];
export type VoteType = ReportSchemas['schemas']['VoteType'];
export type ReportVisibility = ReportSchemas['schemas']['ReportVisibility'];
export type Correction = ReportSchemas['schemas']['Correction'];
export type DialogueItem = ReportSchemas['schemas']['DialogueItem'];
export type HistoryEntry = ReportSchemas['schemas']['HistoryEntry'];
export type Task = ReportSchemas['schemas']['Task'];
export type Job = ReportSchemas['schemas']['Job'];
export type Firm = ReportSchemas['schemas']['Firm'];
export type Work = ReportSchemas['schemas']['Work'];
export type Act = ReportSchemas['schemas']['Act'];
export type AbuseReason = ReportSchemas['schemas']['AbuseReason'];
export type Assignment = ReportSchemas['schemas']['Assignment'];
export type Person = ReportSchemas['schemas']['Person'];
export type OwnScope = ReportSchemas['schemas']['OwnScope'];
export type Signpost = ReportSchemas['schemas']['Signpost'];
export type CategorySettings = ReportSchemas['schemas']['CategorySettings'];
export type NewCategory = ReportSchemas['schemas']['NewCategory'];
export type CategoryChange = ReportSchemas['schemas']['CategoryChange'];
export type AreaShapes = ReportSchemas['schemas']['AreaList'];
export type AreaSettings = ReportSchemas['schemas']['AreaSettings'];
export type Department = ReportSchemas['schemas']['Department'];
export type Calendar = ReportSchemas['schemas']['Calendar'];
export type Shift = ReportSchemas['schemas']['Shift'];
export type Template = ReportSchemas['schemas']['Template'];
export type View = ReportSchemas['schemas']['View'];
export type QueueCounts = ReportSchemas['schemas']['QueueCounts'];
export type QueueWaiting = ReportSchemas['schemas']['QueueWaiting'];
export type BulkMove = ReportSchemas['schemas']['BulkMove'];
export type MoveResult = ReportSchemas['schemas']['MoveResult'];
export type NumbersOverTime = ReportSchemas['schemas']['Numbers'];
export type PeriodNumbers = ReportSchemas['schemas']['Number'];
export type OutboxStats = ReportSchemas['schemas']['OutboxStats'];
export type OutboxAct = ReportSchemas['schemas']['OutboxAct'];
export type OutboxRefusal = ReportSchemas['schemas']['OutboxRefusal'];
export type OutboxMessage = ReportSchemas['schemas']['OutboxMessage'];
export type Notification = NotificationSchemas['schemas']['Notification'];
export type FeedEvent = NotificationSchemas['schemas']['FeedEvent'];
export type WorkerPool = NotificationSchemas['schemas']['WorkerPool'];
export type WorkerPools = NotificationSchemas['schemas']['WorkerPools'];
export type DeadLetter = NotificationSchemas['schemas']['DeadLetter'];
export type DeadLetterGroup = NotificationSchemas['schemas']['DeadLetterGroup'];
export type DeadLetterSelection = NotificationSchemas['schemas']['DeadLetterSelection'];
export type DeadLetterEdited = NotificationSchemas['schemas']['DeadLetterEdited'];
export type FailureClass = NotificationSchemas['schemas']['FailureClass'];
export type Target = NotificationSchemas['schemas']['Target'];
export type Difference = NotificationSchemas['schemas']['Difference'];
export type Replay = NotificationSchemas['schemas']['Replay'];
export type Schedule = ReportSchemas['schemas']['Schedule'];
export type ScheduleRun = ReportSchemas['schemas']['ScheduleRun'];
export type ReconciliationGroup = NotificationSchemas['schemas']['ReconciliationGroup'];
export type MissingMessage = NotificationSchemas['schemas']['MissingMessage'];
/** One thing that happened to a message, in either service. */
export type StoryEntry = Omit<NotificationSchemas['schemas']['StoryEntry'], 'kind'> & {
  kind: NotificationSchemas['schemas']['StoryEntry']['kind'] | ReportSchemas['schemas']['StoryEntry']['kind'];
};
export type DelayedMessage = NotificationSchemas['schemas']['DelayedMessage'];
export type Webhook = NotificationSchemas['schemas']['Webhook'];
export type WebhookSummary = NotificationSchemas['schemas']['WebhookSummary'];
export type WebhookHistory = NotificationSchemas['schemas']['WebhookHistory'];
export type WebhookEventType = NotificationSchemas['schemas']['WebhookEventType'];
export type Delivery = NotificationSchemas['schemas']['Delivery'];
export type DeliveryAttempt = NotificationSchemas['schemas']['DeliveryAttempt'];
export type Contact = NotificationSchemas['schemas']['Contact'];
export type Source = ReportSchemas['schemas']['Source'];
export type Caller = NotificationSchemas['schemas']['Caller'];
export type MailKind = NotificationSchemas['schemas']['MailKind'];
export type Preferences = NotificationSchemas['schemas']['Preferences'];
export type Device = NotificationSchemas['schemas']['Device'];
export type DigestSettings = NotificationSchemas['schemas']['DigestSettings'];
/** A part of either service, as its operators see it. */
export type HealthPart = Omit<NotificationSchemas['schemas']['HealthPart'], 'name'> & {
  name: NotificationSchemas['schemas']['HealthPart']['name'] | ReportSchemas['schemas']['HealthPart']['name'];
};
export type SetupItem = NotificationSchemas['schemas']['SetupItem'];
export type Appearance = NotificationSchemas['schemas']['Appearance'];
export type EmailStatus = NotificationSchemas['schemas']['EmailStatus'];
export type Problem = ReportSchemas['schemas']['Problem'];

/** A report's page has the address of its data: data are asked for by name. */
const headers = { Accept: 'application/json' };

export const reportService = createClient<ReportPaths>({ headers });
export const notificationService = createClient<NotificationPaths>({ headers });

/** A request that did not succeed: the server said why, or did not answer. */
export class Failure extends Error {
  constructor(
    /** Absent when no answer came: the request may have had its effect. */
    readonly problem?: Problem,
  ) {
    super(problem?.title ?? 'no answer');
  }

  /** The name at the end of the problem's type, such as `stale-version`. */
  get kind(): string {
    if (!this.problem) return 'no-answer';
    // A gateway's own problems have no kind; only being busy is expected of it.
    return this.problem.type.split('#')[1] ?? (this.problem.status >= 500 ? 'unavailable' : 'internal');
  }

  /** Whether the request may have had its effect all the same. */
  get uncertain(): boolean {
    const status = this.problem?.status ?? 0;
    return status === 0 || status >= 500 || this.kind === 'request-running';
  }

  /** All that is wrong with the field that a JSON pointer names. */
  faults(pointer: string): string[] {
    return (this.problem?.errors ?? []).filter((fault) => fault.pointer === pointer).map(({ detail }) => detail);
  }

  /** The fault of the field that a JSON pointer names. */
  fault(pointer: string): string | undefined {
    return this.problem?.errors?.find((fault) => fault.pointer === pointer)?.detail;
  }
}

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Called when the server no longer knows who we are, with the kind of its answer. */
let onUnauthenticated = (_: string) => {};
export function whenUnauthenticated(handler: (kind: string) => void): void {
  onUnauthenticated = handler;
}

/** Waits for an answer and returns its body, or throws a Failure. */
export async function must<T>(pending: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await pending;
  } catch {
    throw new Failure();
  }
  if (answer.response.ok) return answer.data as T;
  const failure = new Failure(asProblem(answer));
  if (answer.response.status === 401) onUnauthenticated(failure.kind);
  throw failure;
}

/** A gateway that reaches no service answers in its own format. */
function asProblem({ error, response }: Answer<unknown>): Problem {
  if (typeof error === 'object' && error !== null && 'type' in error) return error as Problem;
  return { type: '#unavailable', title: response.statusText, status: response.status };
}
