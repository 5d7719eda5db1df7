/** The calls of a machine's kernel that reach its hardware, in a test: block devices, mounts, uevents, firmware, modules, a watchdog. */
import { existsSync, renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { KernelPartition } from '../../../src/linux/block/device.ts'
import type { CryptMapping } from '../../../src/linux/block/device-mapper.ts'
import * as files from '../../../src/linux/fs/files.ts'
import type { MountFlag, MountRequest } from '../../../src/linux/fs/mount.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import type { MountEntry } from '../../../src/wire/proc/mountinfo.ts'
import type { Hardware } from './sandbox-hardware.ts'

type Module = Record<string, unknown>

/** The modules of `linux/` for a machine with this hardware, whose files are below `root`. */
export function machineModules(root: string, hardware: Hardware): Record<string, Module> {
  const mounts = mountsOf(root, hardware)
  const mounted = (source: string) => (mounts.mounts as () => MountEntry[])().some((entry) => entry.source === source)
  return {
    block: blockOf(hardware),
    mapper: {
      deviceNumber: (path: string) => `253:${path.slice('/dev/vda'.length)}`,
      createMapping: (mapping: CryptMapping) => hardware.map(mapping),
      findMapping: (name: string) => hardware.mappings.get(name),
      removeMapping(name: string) {
        const device = hardware.mappings.get(name)?.device
        if (device !== undefined && mounted(device)) throw new SystemError('ioctl', 16, `"${name}"`)
        return hardware.unmap(name)
      },
    },
    mount: mounts,
    uevent: {
      watchDevices: (subsystem: string, { signal }: { signal?: AbortSignal } = {}) =>
        hardware.events(subsystem === 'block' ? signal : AbortSignal.abort()),
    },
    efi: firmwareOf(hardware),
    modules: { loadModule: () => true },
    files: {
      writeInto(path: string, text: string) {
        const [, device] = /^\/sys\/class\/block\/([^/]+)\/uevent$/.exec(path) ?? []
        if (device) hardware.changed(device)
        else files.writeInto(`${root}${path}`, text)
      },
    },
    tpm: { openTpm: async () => hardware.tpm && { transmit: hardware.tpm, close: async () => {} } },
    watchdog: { openWatchdog: (_: string, seconds: number) => ({ timeout: seconds, feed() {}, disarm() {} }) },
  }
}

function blockOf(hardware: Hardware): Module {
  return {
    async openDevice(path: string, { write = false } = {}) {
      const device = hardware.open(path)
      // udevd rescans a device when a process closes it that could have written.
      return { ...device, close: async () => void (write && hardware.changed(path.slice('/dev/'.length))) }
    },
    async syncPartitions(_: string, wanted: readonly KernelPartition[]) {
      hardware.sync(wanted)
    },
    kernelPartitions: () => hardware.partitions,
    growXfs: () => false,
    async discard() {},
    async zeroOut() {},
  }
}

function firmwareOf({ uefi, firmware }: Hardware): Module {
  return {
    isEfi: () => uefi,
    efiVariables: () => [...firmware.keys()],
    readEfiVariable: (name: string) => firmware.get(name),
    writeEfiVariable: (name: string, _: string, value: Uint8Array) => firmware.set(name, value),
    removeEfiVariable: (name: string) => firmware.delete(name),
  }
}

const holdsFiles = (source: string) => /^\/dev\/(vda|dm-)\d/.test(source)

/** Mounts: of a device its content is put in the folder's place, all others are only remembered. */
function mountsOf(root: string, hardware: Hardware): Module {
  const table: MountEntry[] = []
  const aside = (target: string) => `${join(root, target)}.below`
  const mount = ({ source, target, type = '', flags = [] }: MountRequest) => {
    if (!existsSync(join(root, target))) throw new SystemError('mount', 2, `"${source}" on "${target}"`)
    if (holdsFiles(source)) {
      if (table.some((entry) => entry.source === source)) throw new SystemError('mount', 16, `"${source}" on "${target}"`)
      const content = hardware.content(source)
      renameSync(join(root, target), aside(target))
      symlinkSync(content, join(root, target))
    }
    table.push({
      id: table.length,
      parent: 0,
      device: '0:1',
      root: '/',
      target,
      options: [...flags],
      propagation: [],
      type,
      source,
      superOptions: [],
    })
  }
  const umount = (target: string) => {
    const at = table.findLastIndex((entry) => entry.target === target)
    const [entry] = at < 0 ? [] : table.splice(at, 1)
    if (!entry) throw new SystemError('umount', 22, `"${target}"`)
    if (!holdsFiles(entry.source)) return
    rmSync(join(root, target))
    renameSync(aside(target), join(root, target))
  }
  return {
    mounts: () => [...table],
    mountAt: (path: string) => table.findLast(({ target }) => target === path),
    mount,
    bind: (source: string, target: string) => mount({ source, target, type: 'bind' }),
    umount,
    umountTree(path: string) {
      const inside = table.filter(({ target }) => target === path || target.startsWith(`${path}/`)).map(({ target }) => target)
      for (const target of inside.reverse()) umount(target)
      return inside
    },
    remount(target: string, flags: readonly MountFlag[]) {
      const entry = table.findLast((each) => each.target === target)
      if (!entry) throw new SystemError('mount', 22, `"${target}"`)
      entry.options = [...flags]
    },
  }
}
