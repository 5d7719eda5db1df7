/** Mounts of the configuration that are made on the node: each once, and taken away when the configuration has it no more. */
import { dirname } from 'node:path'
import type { MountFlag, Propagation } from '../../../linux/fs/mount.ts'
import type { Kernel } from '../../kernel.ts'
import type { NodeMount } from '../kubelet/mounts.ts'

interface Doors {
  readonly mount: Pick<Kernel['mount'], 'mountFlags' | 'mount' | 'mountAt' | 'umount' | 'propagate' | 'remount'>
  readonly files: Pick<Kernel['files'], 'exists' | 'stat' | 'mkdirAll' | 'append'>
}

/** Options that say what is the case anyway. */
const usual = ['rw', 'suid', 'dev', 'exec', 'async', 'atime', 'diratime', 'norelatime', 'nolazytime', 'nostrictatime', 'symfollow']
const propagations = /^r?(shared|private|slave|unbindable)$/

/** What was mounted, in the order in which it was. */
export class NodeMounts {
  readonly #made: { readonly key: string; readonly target: string }[] = []

  constructor(readonly doors: Doors) {}

  /** Leaves exactly these. A later one may lie on an earlier one, so what is to go is taken away from the end. */
  provide(wanted: readonly NodeMount[]): void {
    const keys = wanted.map((mount) => JSON.stringify(mount))
    const changed = this.#made.findIndex(({ key }, index) => key !== keys[index])
    const { mount } = this.doors
    for (const { target } of changed < 0 ? [] : this.#made.splice(changed).reverse())
      if (mount.mountAt(target)) mount.umount(target, { detach: true })
    for (const each of wanted.slice(this.#made.length)) {
      this.#make(each)
      this.#made.push({ key: JSON.stringify(each), target: each.target })
    }
  }

  #make({ source, target, type, options }: NodeMount): void {
    const { mount, files } = this.doors
    const { flags, propagation, data } = this.#parse(options, type)
    const isFolder = !flags.includes('bind') || files.stat(source).isDirectory()
    if (!files.exists(target)) {
      files.mkdirAll(isFolder ? target : dirname(target))
      if (!isFolder) files.append(target, '')
    }
    if (flags.includes('bind')) {
      const place: MountFlag[] = ['bind', 'rec']
      mount.mount({ source, target, flags: place.filter((flag) => flags.includes(flag)) })
    } else mount.mount({ source, target, type, flags, data })
    try {
      const rest = flags.filter((flag) => flag !== 'bind' && flag !== 'rec')
      // The kernel takes no other flags with a bind.
      if (flags.includes('bind') && rest.length > 0) mount.remount(target, ['bind', ...rest])
      for (const how of propagation) mount.propagate(target, how)
    } catch (error) {
      mount.umount(target, { detach: true })
      throw error
    }
  }

  /** Options in the words of fstab; what is none of them is for the file system, of which a bind has none of its own. */
  #parse(options: readonly string[], type: string) {
    const flags = new Set<MountFlag>(type === 'bind' ? ['bind'] : [])
    const propagation: Propagation[] = []
    const data: string[] = []
    for (const option of options) {
      if (option === 'rbind') flags.add('bind').add('rec')
      else if (propagations.test(option)) propagation.push(option as Propagation)
      else if (Object.hasOwn(this.doors.mount.mountFlags, option)) flags.add(option as MountFlag)
      else if (!usual.includes(option)) data.push(option)
    }
    if (flags.has('bind') && data.length > 0) throw new Error(`machine.kubelet.extraMounts: a bind has no option "${data.join(',')}"`)
    return { flags: [...flags], propagation, data: data.join(',') }
  }
}
