/** What lies outside of the store and is behind many a failure: full disks and time servers. */
import type { Store } from '../../../cosi/store.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeServerStatus } from '../../network/resources/time-server.ts'
import { TimeStatus } from '../../time/resources/time-status.ts'
import { queryTimeServer } from '../../time/time-server.ts'
import type { Finding } from './findings.ts'

/** What is asked of the world. */
export interface World {
  readonly files: Pick<Kernel['files'], 'statfs' | 'readTextIfThere'>
  readonly time: Pick<Kernel['time'], 'clock'>
}

/** Milliseconds for one answer. */
const patience = 2_000
/** Below this share of free bytes or files a file system counts as full. */
const tight = 0.01
const places = ['/var', '/system/state', '/run']

/** File systems with no room left. */
export function fullDisks({ files }: { files: Pick<Kernel['files'], 'statfs'> }): Finding[] {
  return places.flatMap((place) => {
    try {
      const { size, available, files: most, filesFree } = files.statfs(place)
      const bytes = size > 0 && available / size < tight
      const names = most > 0 && filesFree / most < tight
      if (!bytes && !names) return []
      const left = bytes ? `${mebibytes(available)} of ${mebibytes(size)} MiB are left` : `${filesFree} of ${most} files can still be made`
      return [{ kind: 'outside' as const, subject: `file system ${place}`, sentence: `it is full: ${left}; make room in it` }]
    } catch {
      return [] // a place that this machine does not have is not full
    }
  })
}

/** Time servers that do not answer, asked now, while the clock is not in step or who keeps it is in trouble. */
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
    return [{ kind: 'outside', subject: 'time servers', sentence: 'none is known: set machine.time.servers or machine.time.disabled' }]
  const asked = await Promise.all(
    servers.slice(0, 8).map(async (server): Promise<Finding[]> => {
      try {
        await queryTimeServer(server, { now: () => time.clock('realtime'), timeout: patience, signal })
        return []
      } catch (error) {
        return [
          {
            kind: 'outside',
            subject: `time server ${server}`,
            sentence: 'it does not answer: check machine.time.servers and the way there',
            error: said(error),
          },
        ]
      }
    }),
  )
  return asked.flat()
}

const mebibytes = (bytes: number) => Math.floor(bytes / 2 ** 20)
const said = (error: unknown) => (error instanceof Error ? error.message : String(error))
