import type { Logger } from '../../../cosi/log.ts'
import type { Machine } from '../../area.ts'
import { lock, moduleLoader } from '../../runtime/module-loader.ts'
import { KernelModuleSpec } from '../../runtime/resources/kernel-module.ts'
import type { Task } from '../sequencer.ts'

/** Drivers of what may be plugged in later, and of what Kubernetes asks the kernel for: one name a line with its parameters, part of the image. */
const hotPlugList = '/usr/share/ichor/hot-plug-modules'

/**
 * The machine's hardware is up: what may be needed later is loaded now, then the kernel takes no module any more. What
 * cannot be loaded is told and holds nothing up.
 */
export const lockModules = (machine: Pick<Machine, 'kernel' | 'store'>): Task => ({
  name: 'lockModules',
  async run({ log, signal }) {
    const { kernel, store } = machine
    const wanted = hotPlugged(kernel, log)
    for (const { spec } of store.list(KernelModuleSpec)) wanted.set(spec.string, spec.parameters ?? [])
    const missing: string[] = []
    const load = loaderOf(kernel, log)
    for (const [name, parameters] of wanted) {
      // Loading holds this thread up; the API is to answer in between.
      await new Promise(setImmediate)
      signal.throwIfAborted()
      try {
        load(name, parameters)
      } catch (error) {
        missing.push(name)
        log.debug('kernel module is not loaded', { module: name, error })
      }
    }
    if (missing.length > 0) log.warn('kernel modules could not be loaded', { modules: missing.join() })
    kernel.sysctl.setSysctl(lock, '1')
    log.info('kernel takes no more modules until the next start', { loaded: wanted.size - missing.length })
  },
})

function hotPlugged({ files }: Machine['kernel'], log: Logger): Map<string, readonly string[]> {
  try {
    const listed = (files.readTextIfThere(hotPlugList) ?? '').split('\n').filter((line) => line && !line.startsWith('#'))
    return new Map(listed.map((line) => line.split(' ')).map(([name = '', ...parameters]) => [name, parameters]))
  } catch (error) {
    log.error('list of hot-plug modules cannot be read', { error })
    return new Map()
  }
}

/** Without its lists no module can be loaded; the kernel is locked all the same. */
function loaderOf(kernel: Machine['kernel'], log: Logger): ReturnType<typeof moduleLoader> {
  try {
    return moduleLoader(kernel)
  } catch (error) {
    log.error('kernel modules cannot be found', { error })
    return () => {
      throw error
    }
  }
}
