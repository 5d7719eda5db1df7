/**
 * A member whose data cannot be used joins again by itself: the data is put aside, and the member is removed, added as a learner and
 * promoted. Only after etcd has exited by itself, only when the data or the other members show the reason, and only while the
 * others have a majority without it; one member at a time.
 */
import type { Clock, Deadline } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Store } from '../../../cosi/store.ts'
import { ichor } from '../../../rpc/enums.ts'
import type { Runner } from '../../../supervise/definition.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { keptFolder, urlsOf } from '../arguments.ts'
import type { EtcdClient, Member } from '../client.ts'
import { EtcdRepair } from '../resources/etcd-repair.ts'
import type { EtcdSpec } from '../resources/etcd-spec.ts'
import { type Others, obstacleTo } from './conditions.ts'
import { type KeptFiles, keepData, readKept, writeKept } from './kept.ts'
import { damageOf, differenceOf, membershipOf, type Verification } from './verdict.ts'

type Spec = SpecOf<typeof EtcdSpec>
type Action = keyof typeof ichor.v1.EtcdRepairEvent.Action

/** What a repair uses of the machine. */
export interface RepairTools {
  readonly store: Store
  readonly files: KeptFiles
  readonly clock: Clock
  readonly log: Logger
  /** A client of the other control plane nodes' etcd; undefined when none is known. */
  others(): EtcdClient | undefined
  /** A client of one member. */
  at(member: Member): EtcdClient
  /** Reads all of the data. */
  verify(signal: AbortSignal): Promise<Verification>
  publish(event: { action: number; member: string; reason: string; kept: string }): void
}

/** Under this key a node claims to be the one that joins again. */
export const repairClaim = 'ichor:etcd:repair'
/** Longer than a member takes to join, promote and answer. In seconds. */
const claimSeconds = 900
/** Milliseconds for which a verification counts: etcd starts every few seconds, and its data may be gigabytes. */
const verificationTime = 300_000
/** Milliseconds between two repairs: data that is damaged again at once lies on a failing disk. */
const repairInterval = 600_000

/** The repairs of one machine's member. */
export class Repair {
  readonly #tools: RepairTools
  #exited = false
  #verified: { readonly found: Verification; readonly until: Deadline } | undefined
  #next: Deadline | undefined

  constructor(tools: RepairTools) {
    this.#tools = tools
  }

  /** A runner after whose runs the data is examined when they exit by themselves. */
  watching(runner: Runner): Runner {
    return async (context) => {
      const run = await runner(context)
      const exit = run.exit.then((end) => {
        if (!context.signal.aborted && end.killed !== true) this.#exited = true
        return end
      })
      return { ...run, exit }
    }
  }

  /** Publishes what is known of data that was put aside before this start of the machine. */
  restore(): void {
    const { store, files } = this.#tools
    const kept = readKept(files)
    if (!kept || store.get(EtcdRepair, 'etcd')) return
    const state = kept.voting === undefined ? 'joining' : 'voting'
    store.put(EtcdRepair, 'etcd', { state, reason: kept.reason, time: kept.time, waiting: '', kept: keptFolder })
  }

  /** Puts the data aside if it cannot be used and the others can do without this member; resolves to whether it did. */
  async putAside(spec: Spec, { signal, note }: { signal: AbortSignal; note(message: string): void }): Promise<boolean> {
    if (!this.#exited) return false
    this.#exited = false
    const others = this.#tools.others()
    try {
      return await this.#examine(spec, others, { signal, note })
    } finally {
      others?.close()
    }
  }

  async #examine(
    spec: Spec,
    client: EtcdClient | undefined,
    { signal, note }: { signal: AbortSignal; note(message: string): void },
  ): Promise<boolean> {
    const { log } = this.#tools
    const found = await this.#verification(signal)
    const { owner } = found
    const seen = client && (await this.#seen(client).catch((error: unknown) => messageOf(error)))
    const others = typeof seen === 'object' ? seen : undefined
    const reason =
      damageOf(found) ?? (others && (membershipOf(owner, others.cluster, others.members) ?? (await this.#difference(spec, others, found))))
    if (reason === undefined) {
      this.#usable()
      return false
    }
    const own = others && ownOf(others, spec, owner)
    const waiting = !client
      ? 'no other control plane node is known: recover the cluster from a snapshot with "talosctl bootstrap --recover-from"'
      : !others
        ? `the other members have no majority (${String(seen)}): bring them back, or recover the cluster from a snapshot`
        : (foreign(owner, others.cluster) ?? this.#tooSoon() ?? (await this.#claimed(client, spec, own, others)))
    if (waiting !== undefined || !client || !others) {
      if (this.#tools.store.get(EtcdRepair, 'etcd')?.spec.waiting !== waiting)
        log.error('etcd cannot use its data, and does not join again by itself', { reason, waiting })
      note(`cannot use its data (${reason}): ${waiting}`)
      this.#put({ state: 'waiting', reason, waiting: waiting ?? '', kept: '' })
      return false
    }
    await this.#rejoin(client, spec, own, reason)
    return true
  }

  /** The data turned out to be in order: what was reported before is over. */
  #usable(): void {
    const { store } = this.#tools
    if (store.get(EtcdRepair, 'etcd')?.spec.state === 'waiting') store.destroy(EtcdRepair, 'etcd')
    this.restore()
  }

  /** What the files show, not more often than every few minutes. */
  async #verification(signal: AbortSignal): Promise<Verification> {
    const { clock, verify, log } = this.#tools
    if (this.#verified && !this.#verified.until.over) return this.#verified.found
    try {
      const found = await verify(signal)
      this.#verified = { found, until: clock.deadline(verificationTime) }
      return found
    } catch (error) {
      if (signal.aborted) throw error
      log.warn('verifying the data of etcd failed', { error: messageOf(error) })
      return { damage: [] }
    }
  }

  async #seen(client: EtcdClient): Promise<Others & { cluster: string }> {
    const members = await client.members()
    const { header } = await client.status()
    const voters = members.filter(({ isLearner, name }) => !isLearner && name !== '')
    const answers = await Promise.all(voters.map(async (member) => ((await this.#answers(member)) ? [member.ID] : [])))
    return { members, answering: new Set(answers.flat()), cluster: header?.clusterId ?? '0' }
  }

  async #answers(member: Member): Promise<boolean> {
    const client = this.#tools.at(member)
    try {
      const { header, leader } = await client.status()
      return header?.memberId === member.ID && leader !== '0'
    } catch {
      return false
    } finally {
      client.close()
    }
  }

  /** Pages of a database have no checksums: data that is whole may differ from that of the others. */
  async #difference(spec: Spec, { members, answering }: Others, found: Verification): Promise<string | undefined> {
    const voters = members.filter(({ ID, peerURLs }) => answering.has(ID) && !isOwn(peerURLs, spec))
    const clients = voters.map((member) => this.#tools.at(member))
    try {
      return await differenceOf(found, clients)
    } finally {
      for (const client of clients) client.close()
    }
  }

  #tooSoon(): string | undefined {
    if (this.#next?.over ?? true) return undefined
    return 'its data was replaced a few minutes ago and is damaged again, so the disk may be failing: replace it, or reset the node'
  }

  /** Claims to be the one that joins again; returns why that is not possible. */
  async #claimed(client: EtcdClient, { name }: Spec, own: Member | undefined, others: Others): Promise<string | undefined> {
    const obstacle = obstacleTo(own, others)
    if (obstacle !== undefined) return obstacle
    try {
      const holder = await client.claim(repairClaim, name, claimSeconds)
      return holder === name ? undefined : `${holder} is joining again: one member joins at a time`
    } catch (error) {
      return `the other members accept no write: ${messageOf(error)}`
    }
  }

  async #rejoin(client: EtcdClient, spec: Spec, own: Member | undefined, reason: string): Promise<void> {
    const { log, files, clock } = this.#tools
    this.#next = clock.deadline(repairInterval)
    this.#verified = undefined
    log.warn('etcd cannot use its data: it is put aside, and the member joins again', { reason, kept: keptFolder })
    await keepData(files, { reason, time: clock.now().toISOString() })
    this.#put({ state: 'joining', reason, waiting: '', kept: keptFolder })
    this.#publish('PUT_ASIDE', spec.name, reason)
    if (!own) return
    try {
      await client.remove(own.ID)
    } catch (error) {
      // Joining removes what is left at the address of this member, and repeats that until it succeeds.
      log.warn('removing the old etcd member failed', { member: own.ID, error: messageOf(error) })
    }
  }

  /** The member votes again: the next one may join. */
  async voting(name: string, client: EtcdClient): Promise<void> {
    const { store, files, clock, log } = this.#tools
    const repair = store.get(EtcdRepair, 'etcd')?.spec
    if (repair?.state !== 'joining') return
    await client.release(repairClaim, name)
    await writeKept(files, { reason: repair.reason, time: repair.time, voting: clock.now().toISOString() })
    this.#put({ ...repair, state: 'voting' })
    log.info('etcd member votes again after its data was replaced', { reason: repair.reason })
    this.#publish('REJOINED', name, repair.reason)
  }

  /** When the data that is kept may be deleted: so many milliseconds after the member voted again. */
  keptUntil(time: number): Date | undefined {
    const voting = readKept(this.#tools.files)?.voting
    return voting === undefined ? undefined : new Date(Date.parse(voting) + time)
  }

  /** Deletes the data that was put aside. */
  async forget(name: string): Promise<void> {
    const { store, files, log } = this.#tools
    const reason = store.get(EtcdRepair, 'etcd')?.spec.reason ?? ''
    await files.remove(keptFolder)
    store.destroy(EtcdRepair, 'etcd')
    log.info('deleted the data that etcd could not use', { kept: keptFolder })
    this.#publish('DELETED', name, reason)
  }

  #put(repair: Omit<SpecOf<typeof EtcdRepair>, 'time'> & { time?: string }): void {
    const { store, clock } = this.#tools
    const before = store.get(EtcdRepair, 'etcd')?.spec
    const same = before?.state === repair.state && before.reason === repair.reason
    const time = repair.time ?? (same ? before.time : clock.now().toISOString())
    store.put(EtcdRepair, 'etcd', { ...repair, time })
  }

  #publish(action: Action, member: string, reason: string): void {
    this.#tools.publish({ action: ichor.v1.EtcdRepairEvent.Action[action], member, reason, kept: keptFolder })
  }
}

/** This node's member: the one that wrote the data, or the one at its address. */
const ownOf = ({ members }: Others, spec: Spec, owner: Verification['owner']): Member | undefined =>
  members.find(({ ID }) => ID === owner?.member) ?? members.find(({ peerURLs }) => isOwn(peerURLs, spec))

const isOwn = (peerURLs: readonly string[], { advertisedAddresses }: Spec): boolean =>
  urlsOf(advertisedAddresses, 2380).some((url) => peerURLs.includes(url))

function foreign(owner: Verification['owner'], cluster: string): string | undefined {
  if (!owner || owner.cluster === cluster) return undefined
  return 'it is the data of another cluster than that of the other members: reset the node with "talosctl reset" if it should join them'
}
