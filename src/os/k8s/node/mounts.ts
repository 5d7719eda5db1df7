/** Mounts of the configuration that are made on the node: each once, and removed when the configuration no longer has it. */
import { dirname } from 'node:path'
import type { MountFlag, Propagation } from '../../../linux/fs/mount.ts'
import type { Kernel } from '../../kernel.ts'
import type { NodeMount } from '../kubelet/mounts.ts'

interface KernelCalls {
  readonly mount: Pick<Kernel['mount'], 'mountFlags' | 'mount' | 'mountAt' | 'umount' | 'propagate' | 'remount'>
  readonly files: Pick<Kernel['files'], 'exists' | 'stat' | 'mkdirAll' | 'append'>
}

/** Options that state the default. */
const usual = ['rw', 'suid', 'dev', 'exec', 'async', 'atime', 'diratime', 'norelatime', 'nolazytime', 'nostrictatime', 'symfollow']
const propagations = /^r?(shared|private|slave|unbindable)$/

/** The mounts made so far, in order. */
export class NodeMounts {
  readonly #made: { readonly key: string; readonly target: string }[] = []

  constructor(readonly kernel: KernelCalls) {}

  /** Provides exactly these. A later mount may be below an earlier one, so the ones to remove are unmounted from the end. */
  provide(wanted: readonly NodeMount[]): void {
    const keys = wanted.map((mount) => JSON.stringify(mount))
    const changed = this.#made.findIndex(({ key }, index) => key !== keys[index])
    const { mount } = this.kernel
    for (const { target } of changed < 0 ? [] : this.#made.splice(changed).reverse())
      if (mount.mountAt(target)) mount.umount(target, { detach: true })
    for (const each of wanted.slice(this.#made.length)) {
      this.#make(each)
      this.#made.push({ key: JSON.stringify(each), target: each.target })
    }
  }

  #make({ source, target, type, options }: NodeMount): void {
    const { mount, files } = this.kernel
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
      // The kernel accepts no other flags together with a bind.
      if (flags.includes('bind') && rest.length > 0) mount.remount(target, ['bind', ...rest])
      for (const how of propagation) mount.propagate(target, how)
    } catch (error) {
      mount.umount(target, { detach: true })
      throw error
    }
  }

  /** Options as in fstab; unknown ones go to the file system, of which a bind has none. */
  #parse(options: readonly string[], type: string) {
    const flags = new Set<MountFlag>(type === 'bind' ? ['bind'] : [])
    const propagation: Propagation[] = []
    const data: string[] = []
    for (const option of options) {
      if (option === 'rbind') flags.add('bind').add('rec')
      else if (propagations.test(option)) propagation.push(option as Propagation)
      else if (Object.hasOwn(this.kernel.mount.mountFlags, option)) flags.add(option as MountFlag)
      else if (!usual.includes(option)) data.push(option)
    }
    if (flags.has('bind') && data.length > 0) throw new Error(`machine.kubelet.extraMounts: a bind has no option "${data.join(',')}"`)
    return { flags: [...flags], propagation, data: data.join(',') }
  }
}
