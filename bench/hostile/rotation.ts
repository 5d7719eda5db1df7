/** Rotates and compresses a pod's logs faster than the kubelet does, as for a container that never stops writing. */
import { existsSync, linkSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

const unpacked = 256 << 20
const period = 2_000

/** The continuous rotation of a container's logs. */
export interface Rotation {
  /** `namespace/pod:container`, as in the machine API. */
  readonly container: string
  stop(): void
}

/** Rotates a container's log every two seconds and adds a compressed log of 256 MiB of lines. */
export function rotateLogs(disk: string): Rotation {
  const pods = join(disk, 'var/log/pods')
  const [found] = readdirSync(pods).flatMap((pod) =>
    readdirSync(join(pods, pod))
      .filter((name) => existsSync(join(pods, pod, name, '0.log')))
      .map((name) => ({ pod, name })),
  )
  if (!found) throw new Error(`no pod of the node has a log below "${pods}"`)
  const [namespace, pod] = found.pod.split('_')
  const log = join(pods, found.pod, found.name, '0.log')
  const bomb = join(disk, 'hostile.gz')
  writeFileSync(bomb, gzipSync(Buffer.alloc(unpacked, `${'x'.repeat(1023)}\n`)))
  const made: string[] = []
  const timer = setInterval(() => {
    const at = new Date()
      .toISOString()
      .replaceAll(/[-:]|\..*/g, '')
      .replace('T', '-')
    const [plain, compressed, next] = [`${log}.${at}`, `${log}.${at}1.gz`, `${log}.next`]
    writeFileSync(next, '')
    linkSync(bomb, compressed)
    renameSync(log, plain)
    renameSync(next, log)
    made.push(plain, compressed)
    for (const old of made.splice(0, made.length - 6)) rmSync(old, { force: true })
  }, period)
  return {
    container: `${namespace}/${pod}:${found.name}`,
    stop() {
      clearInterval(timer)
      for (const path of [bomb, ...made]) rmSync(path, { force: true })
    },
  }
}
