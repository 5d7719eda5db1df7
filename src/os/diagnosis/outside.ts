/** Causes outside of the store: full disks and time servers. */
import type { Store } from '../../cosi/store.ts'
import { messageOf } from '../../wire/error-message.ts'
import { reserveOf } from '../block/public.ts'
import type { Kernel } from '../kernel.ts'
import { TimeServerStatus } from '../network/resources/time-server.ts'
import { queryTimeServer } from '../time/public.ts'
import { TimeStatus } from '../time/resources/time-status.ts'
import type { Finding } from './findings.ts'
import { spaceUsers } from './space-users.ts'

/** The external state that is queried. */
export interface World {
  readonly files: Pick<Kernel['files'], 'statfs' | 'readTextIfThere' | 'walk' | 'list' | 'exists'>
  readonly time: Pick<Kernel['time'], 'clock'>
  readonly net: Pick<Kernel['net'], 'openNetwork'>
}

/** Timeout of one answer, in milliseconds. */
const answerTimeout = 2_000
/**
 * A file system with a smaller share of free bytes or files counts as full, and one that has little more left than the system keeps
 * back: of a full one that is free too.
 */
const tight = 0.01
const timesReserve = 1.5
const places = ['/var', '/system/state', '/run']

/** File systems with no room left. */
export const fullDisks = (world: { files: Pick<Kernel['files'], 'statfs'> }): Finding[] => fullPlaces(world).map(({ finding }) => finding)

function fullPlaces({ files }: { files: Pick<Kernel['files'], 'statfs'> }): { place: string; finding: Finding }[] {
  return places.flatMap((place) => {
    try {
      const { size, available, files: most, filesFree } = files.statfs(place)
      const bytes = size > 0 && available < Math.max(size * tight, reserveOf(size) * timesReserve)
      const names = most > 0 && filesFree / most < tight
      if (!bytes && !names) return []
      const left = bytes ? `${mebibytes(available)} of ${mebibytes(size)} MiB are left` : `${filesFree} of ${most} files can still be made`
      const finding = {
        kind: 'outside' as const,
        about: { kind: 'other' as const },
        subject: `file system ${place}`,
        sentence: `it is full: ${left}; make room in it`,
      }
      return [{ place, finding }]
    } catch {
      return [] // this machine does not have the path
    }
  })
}

/** The same with who takes the space, where the machine keeps what others write. */
export async function fullDisksWithUsers({ files }: Pick<World, 'files'>): Promise<Finding[]> {
  return Promise.all(
    fullPlaces({ files }).map(async ({ place, finding }) => {
      const users = place === '/var' ? await spaceUsers(files) : undefined
      return users === undefined ? finding : { ...finding, sentence: `${finding.sentence}; ${users}` }
    }),
  )
}

/** Another machine that does not answer. */
export const silentParty = (subject: string, sentence: string, error?: string): Finding => ({
  kind: 'outside',
  about: { kind: 'other' },
  silent: true,
  subject,
  sentence,
  ...(error !== undefined && { error }),
})

/** Time servers that do not answer; queried while the clock is not in step or its controller fails. */
export async function silentTimeServers(
  { time }: Pick<World, 'time'>,
  store: Store,
  troubled: boolean,
  signal?: AbortSignal,
): Promise<Finding[]> {
  const status = store.get(TimeStatus, 'node')?.spec
  if (!status || (status.synced && !troubled)) return []
  const servers = store.list(TimeServerStatus).flatMap(({ spec }) => spec.timeServers)
  if (servers.length === 0)
    return [
      {
        kind: 'outside',
        about: { kind: 'other' },
        subject: 'time servers',
        sentence: 'none is known: set machine.time.servers or machine.time.disabled',
      },
    ]
  const findings = await Promise.all(
    servers.slice(0, 8).map(async (server): Promise<Finding[]> => {
      try {
        await queryTimeServer(server, { now: () => time.clock('realtime'), timeout: answerTimeout, signal })
        return []
      } catch (error) {
        return [
          silentParty(`time server ${server}`, 'it does not answer: check machine.time.servers and the route to it', messageOf(error)),
        ]
      }
    }),
  )
  return findings.flat()
}

const mebibytes = (bytes: number) => Math.floor(bytes / 2 ** 20)
