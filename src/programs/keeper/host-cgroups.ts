/** The host's control groups, whichever version is mounted: where they are, who is in one, and how one is emptied and removed. */

import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The directories of one group in every mounted hierarchy. */
export function cgroupDirectories(path: string, mountinfo = readFileSync('/proc/self/mountinfo', 'utf8')): string[] {
  return hierarchies(mountinfo).map((mount) => join(mount, path))
}

/** Mount points of all cgroup hierarchies, from /proc/self/mountinfo. */
export function hierarchies(mountinfo: string): string[] {
  const mounts = new Set<string>()
  for (const line of mountinfo.split('\n')) {
    const [left = '', right = ''] = line.split(' - ')
    const type = right.split(' ')[0]
    if (type === 'cgroup' || type === 'cgroup2') mounts.add(left.split(' ')[4] ?? '')
  }
  mounts.delete('')
  return [...mounts]
}

/** All processes in a group and below it. */
export function cgroupProcesses(path: string): number[] {
  const pids = new Set<number>()
  for (const directory of cgroupDirectories(path)) {
    walk(directory, (group) => {
      for (const line of read(join(group, 'cgroup.procs')).split('\n')) if (/^[1-9]\d*$/.test(line)) pids.add(Number(line))
    })
  }
  return [...pids]
}

/** Kills everything in a group, again until it is empty; returns the processes that outlived the deadline. */
export async function killCgroup(path: string, deadline = 20_000): Promise<number[]> {
  const end = Date.now() + deadline
  for (let wait = 5; ; wait = Math.min(wait * 2, 200)) {
    const pids = cgroupProcesses(path)
    if (pids.length === 0 || Date.now() > end) return pids
    for (const directory of cgroupDirectories(path)) {
      thaw(directory)
      if (existsSync(join(directory, 'cgroup.kill'))) attempt(() => writeFileSync(join(directory, 'cgroup.kill'), '1'))
    }
    for (const pid of pids) attempt(() => process.kill(pid, 'SIGKILL'))
    await new Promise((resolve) => setTimeout(resolve, wait))
  }
}

/** Removes an empty group with all below it from every hierarchy; returns the directories that would not go. */
export async function removeCgroup(path: string, deadline = 5_000): Promise<string[]> {
  const end = Date.now() + deadline
  for (;;) {
    const left: string[] = []
    for (const directory of cgroupDirectories(path)) {
      walk(directory, (group) => {
        try {
          rmdirSync(group)
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'ENOENT') left.push(group)
        }
      })
    }
    // The last process leaves its group a moment after it was reaped.
    if (left.length === 0 || Date.now() > end) return left
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

function walk(directory: string, visit: (group: string) => void): void {
  let children: string[]
  try {
    children = readdirSync(directory, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch {
    return
  }
  for (const child of children) walk(join(directory, child), visit)
  visit(directory)
}

function thaw(directory: string): void {
  if (existsSync(join(directory, 'freezer.state'))) attempt(() => writeFileSync(join(directory, 'freezer.state'), 'THAWED'))
  if (existsSync(join(directory, 'cgroup.freeze'))) attempt(() => writeFileSync(join(directory, 'cgroup.freeze'), '0'))
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

function attempt(act: () => void): void {
  try {
    act()
  } catch {
    // The process or group went on its own; the next look tells.
  }
}
