/** What the kernel shows of processes and loop devices: the stories judge by it what was done. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The identity of a process's namespace as `net:[4026531840]`. */
export function namespaceOf(pid: number | 'self', kind: string): string {
  return readlinkSync(`/proc/${pid}/ns/${kind}`)
}

/** The paths of the groups a process is in, one of each hierarchy (cgroups(7)). */
export function cgroupsOf(pid: number): string[] {
  return [...readFileSync(`/proc/${pid}/cgroup`, 'utf8').matchAll(/^\d+:[^:]*:(.*)$/gm)].map(([, path = '']) => path)
}

/** A loop device in use, as /sys shows it. */
export interface LoopDevice {
  readonly device: string
  readonly backingFile: string
  readonly autoclear: boolean
}

/** Every loop device in use. */
export function loopDevices(): LoopDevice[] {
  const attribute = (name: string, file: string) => readFileSync(`/sys/block/${name}/loop/${file}`, 'utf8').trim()
  return readdirSync('/sys/block')
    .filter((name) => /^loop\d+$/.test(name))
    .flatMap((name) => {
      try {
        const backingFile = attribute(name, 'backing_file')
        return [{ device: `/dev/${name}`, backingFile, autoclear: attribute(name, 'autoclear') === '1' }]
      } catch {
        return [] // not attached, or detached meanwhile
      }
    })
}
