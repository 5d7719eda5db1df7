/**
 * Keeps etcd's databases small and writable. Members are defragmented one at a time, by one node at a time, the leader last;
 * a cluster that has reached its quota is compacted, defragmented and disarmed.
 */
import type { Clock, Deadline } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { ichor } from '../../../rpc/enums.ts'
import { RpcError } from '../../../rpc/status.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { type AlarmKind, defragmentationLimit, type EtcdClient, type Member } from '../client.ts'
import type { EtcdUpkeep } from '../resources/etcd-upkeep.ts'
import { leaderLast, type MemberSize, nearlyFull, quotaOf, wasteful } from './plan.ts'

type Status = SpecOf<typeof EtcdUpkeep>
type Action = keyof typeof ichor.v1.EtcdUpkeepEvent.Action

/** What upkeep uses of the machine. */
export interface UpkeepTools {
  readonly clock: Clock
  readonly log: Logger
  /** A client of this node's member. */
  local(): EtcdClient
  /** A client of another member. */
  at(member: Member): EtcdClient
  /** Publishes what was done. */
  publish(event: { action: number; member: string; before: number; after: number; quota: number }): void
}

/** The result of one round. */
export interface Round {
  readonly status: Status
  /** What an operator has to know, each with a name. */
  readonly problems: readonly { readonly id: string; readonly message: string }[]
}

/** Under this key a node claims the upkeep. */
export const claimName = 'ichor:etcd:upkeep'
/** Longer than a defragmentation may take, so that no other node orders a second one meanwhile. In seconds. */
const claimSeconds = defragmentationLimit / 1000 + 30
/** Milliseconds until a member is defragmented again. */
const settleTime = 600_000
/** Milliseconds until a cluster that stayed full is compacted again. */
const fullRetry = 60_000
/** Milliseconds for which it is reported that etcd was full. */
const fullIsNews = 3_600_000

interface View {
  readonly own: EtcdClient
  readonly id: string
  readonly revision: number
  readonly members: readonly Member[]
  /** Sizes of the voting members that answer. */
  readonly sizes: readonly MemberSize[]
  readonly voters: number
  readonly alarms: ReadonlySet<AlarmKind>
}

/** The upkeep of one node. */
export class Upkeep {
  readonly #tools: UpkeepTools
  readonly #last = new Map<string, Deadline>()
  #fullRetry: Deadline | undefined
  #claimedUntil: Deadline | undefined
  #defragmented: Status['defragmented']
  #full: { readonly status: Status['full']; readonly until: Deadline } | undefined

  constructor(tools: UpkeepTools) {
    this.#tools = tools
  }

  /** Looks at all members and does the next thing that is due. Rejects when etcd has no majority. */
  async round(node: string): Promise<Round> {
    const own = this.#tools.local()
    try {
      let view = await this.#view(own)
      if (view.alarms.has('NOSPACE')) {
        if ((this.#fullRetry?.over ?? true) && (await this.#mine(view, node))) view = await this.#makeRoom(view)
      } else {
        const next = this.#next(view)
        if (next && (await this.#mine(view, node))) {
          await this.#defragment(view, next)
          view = await this.#view(own)
        }
      }
      return this.#report(view)
    } finally {
      own.close()
    }
  }

  async #view(own: EtcdClient): Promise<View> {
    const { header } = await own.status()
    // A linearizable list: without a majority nothing is done.
    const members = await own.members()
    const voting = members.filter(({ isLearner }) => !isLearner)
    const sizes = await Promise.all(voting.map((member) => this.#size(member)))
    const alarms = (await own.alarms()).map(({ alarm }): AlarmKind => (alarm === 1 ? 'NOSPACE' : 'CORRUPT'))
    return {
      own,
      id: header?.memberId ?? '0',
      revision: header?.revision ?? 0,
      members,
      sizes: sizes.flatMap((size) => size ?? []),
      voters: voting.length,
      alarms: new Set(alarms),
    }
  }

  async #size(member: Member): Promise<MemberSize | undefined> {
    const client = this.#tools.at(member)
    try {
      const { dbSize, dbSizeInUse, dbSizeQuota, leader } = await client.status()
      return {
        id: member.ID,
        name: member.name,
        leads: leader === member.ID,
        size: dbSize,
        inUse: dbSizeInUse,
        quota: quotaOf(dbSizeQuota),
      }
    } catch {
      return undefined
    } finally {
      client.close()
    }
  }

  /** The next member to defragment; none while a member does not answer, since another one would not answer then either. */
  #next({ sizes, voters, members }: View): MemberSize | undefined {
    if (sizes.length < voters || members.length > voters) return undefined
    return wasteful(sizes).find(({ id }) => this.#last.get(id)?.over ?? true)
  }

  /**
   * Whether this node does it. A full etcd grants no claim; then the one who has it goes on while it lasts, and without one the
   * leader's node acts.
   */
  async #mine({ own, id, sizes }: View, node: string): Promise<boolean> {
    const until = this.#tools.clock.deadline((claimSeconds * 1000) / 2)
    try {
      const mine = (await own.claim(claimName, node, claimSeconds)) === node
      this.#claimedUntil = mine ? until : undefined
      return mine
    } catch (error) {
      if (!(error instanceof RpcError) || error.status !== 'ResourceExhausted') throw error
      const holder = await own.get(claimName)
      if (holder !== undefined) return holder === node && this.#claimedUntil !== undefined && !this.#claimedUntil.over
      return sizes.some((member) => member.leads && member.id === id)
    }
  }

  async #defragment(view: View, member: MemberSize): Promise<void> {
    const { clock, log, at } = this.#tools
    const place = view.members.find(({ ID }) => ID === member.id)
    if (!place) return
    this.#last.set(member.id, clock.deadline(settleTime))
    if (member.leads) await this.#handOn(view, member)
    log.info('defragmenting etcd member', { member: member.name, size: member.size, in_use: member.inUse })
    const client = at(place)
    try {
      await client.defragment()
    } finally {
      client.close()
    }
    const after = (await this.#size(place))?.size ?? member.size
    this.#defragmented = { member: member.name, time: clock.now().toISOString(), before: member.size, after }
    this.#publish('DEFRAGMENTED', { member: member.name, before: member.size, after, quota: member.quota })
  }

  /** Another member leads meanwhile, so that writes go on. Where that fails the defragmentation only delays them. */
  async #handOn({ sizes, members }: View, leader: MemberSize): Promise<void> {
    const heir = sizes.find(({ id }) => id !== leader.id)
    const place = members.find(({ ID }) => ID === leader.id)
    if (!heir || !place) return
    const client = this.#tools.at(place)
    try {
      await client.moveLeader(heir.id)
    } catch (error) {
      this.#tools.log.warn('moving the leadership of etcd failed', { from: leader.name, to: heir.name, error: messageOf(error) })
    } finally {
      client.close()
    }
  }

  /** Discards history, defragments each member that answers, and disarms the alarm if there is room then. */
  async #makeRoom(view: View): Promise<View> {
    const { clock, log } = this.#tools
    const before = largest(view.sizes)
    const quota = Math.min(...view.sizes.map((member) => member.quota))
    this.#fullRetry = clock.deadline(fullRetry)
    this.#publish('FULL', { member: '', before, after: before, quota })
    log.warn('etcd has reached its quota: compacting and defragmenting', { size: before, quota })
    try {
      await view.own.compact(view.revision)
    } catch (error) {
      // The revision was compacted already.
      if (!(error instanceof RpcError) || error.status !== 'OutOfRange') throw error
    }
    for (const member of leaderLast(view.sizes)) await this.#defragment(view, member)
    const seen = await this.#view(view.own)
    const after = largest(seen.sizes)
    const recovered = seen.sizes.every(({ size, quota }) => size < quota)
    if (recovered) await view.own.disarm('NOSPACE')
    const status = { time: clock.now().toISOString(), recovered, before, after }
    this.#full = { status, until: clock.deadline(fullIsNews) }
    this.#publish(recovered ? 'WRITABLE' : 'STILL_FULL', { member: '', before, after, quota })
    return recovered ? await this.#view(view.own) : seen
  }

  #publish(action: Action, event: { member: string; before: number; after: number; quota: number }): void {
    const quota = Number.isFinite(event.quota) ? event.quota : 0
    this.#tools.publish({ ...event, quota, action: ichor.v1.EtcdUpkeepEvent.Action[action] })
  }

  #report({ sizes, alarms }: View): Round {
    const members = sizes.map(({ name, size, inUse, quota }) => ({ name, size, inUse, quota: Number.isFinite(quota) ? quota : 0 }))
    const status: Status = {
      state: alarms.has('NOSPACE') ? 'full' : 'writable',
      members,
      ...(this.#defragmented && { defragmented: this.#defragmented }),
      ...(this.#full && !this.#full.until.over && { full: this.#full.status }),
    }
    return { status, problems: problemsOf(sizes, alarms) }
  }
}

const largest = (sizes: readonly MemberSize[]): number => Math.max(0, ...sizes.map(({ size }) => size))
const megabytes = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MiB`
const listed = (members: readonly MemberSize[]): string =>
  members.map(({ name, inUse, quota }) => `${name} has ${megabytes(inUse)} of data and a quota of ${megabytes(quota)}`).join(', ')

function problemsOf(sizes: readonly MemberSize[], alarms: ReadonlySet<AlarmKind>): Round['problems'] {
  const raise = 'delete what is not needed, or raise "quota-backend-bytes" in cluster.etcd.extraArgs'
  const full = alarms.has('NOSPACE')
    ? [{ id: 'etcd-full', message: `etcd has reached its quota and refuses writes (${listed(sizes)}): ${raise}` }]
    : nearlyFull(sizes).length > 0
      ? [{ id: 'etcd-nearly-full', message: `etcd will soon refuse writes: ${listed(nearlyFull(sizes))}: ${raise}` }]
      : []
  const corrupt = alarms.has('CORRUPT')
    ? [
        {
          id: 'etcd-corrupt',
          message:
            'the data of an etcd member differs from the others’ ("talosctl etcd alarm list" names it): remove that member with "talosctl etcd remove-member" and reset its node',
        },
      ]
    : []
  return [...full, ...corrupt]
}
