import type { Logger } from '../../../cosi/log.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Machine } from '../../area.ts'
import { lock, moduleLoader } from '../../runtime/public.ts'
import { KernelModuleSpec } from '../../runtime/resources/kernel-module.ts'
import type { Task } from '../sequencer.ts'

/** Modules for hot-plugged devices and for Kubernetes: one name with parameters per line, part of the image. */
const hotPlugList = '/usr/share/ichor/hot-plug-modules'

/**
 * Loads the modules that may be needed later, then locks module loading. Modules that fail to load are logged and do not block
 * the boot.
 */
export const lockModules = (machine: Pick<Machine, 'kernel' | 'store'>): Task => ({
  name: 'lockModules',
  async run({ log, signal }) {
    const { kernel, store } = machine
    const wanted = hotPlugged(kernel, log)
    const configured = store.list(KernelModuleSpec).map(({ spec }) => spec)
    for (const { string, parameters = [] } of configured) wanted.set(string, parameters)
    const missing: string[] = []
    let loaded = 0
    const load = loaderOf(kernel, log)
    for (const [name, parameters] of wanted) {
      // Loading blocks this thread; yield so that the API can answer in between.
      await new Promise(setImmediate)
      signal.throwIfAborted()
      try {
        load(name, parameters)
        loaded++
      } catch (error) {
        // A module of the image's list finds nothing to drive on most machines: that of another maker's processor, for one.
        const isExpected = failedWith(error, 'ENODEV', 'EOPNOTSUPP') && !configured.some(({ string }) => string === name)
        if (!isExpected) missing.push(name)
        log.debug('load kernel module failed', { module: name, error })
      }
    }
    if (missing.length > 0) log.warn('load kernel modules failed', { modules: missing.join() })
    kernel.sysctl.setSysctl(lock, '1')
    log.info('kernel module loading locked until reboot', { loaded })
  },
})

function hotPlugged({ files }: Machine['kernel'], log: Logger): Map<string, readonly string[]> {
  try {
    const listed = (files.readTextIfThere(hotPlugList) ?? '').split('\n').filter((line) => line && !line.startsWith('#'))
    return new Map(listed.map((line) => line.split(' ')).map(([name = '', ...parameters]) => [name, parameters]))
  } catch (error) {
    log.error('read list of hot-plug modules failed', { error })
    return new Map()
  }
}

/** Without module indexes no module can be loaded, but loading is locked anyway. */
function loaderOf(kernel: Machine['kernel'], log: Logger): ReturnType<typeof moduleLoader> {
  try {
    return moduleLoader(kernel)
  } catch (error) {
    log.error('read kernel module index failed', { error })
    return () => {
      throw error
    }
  }
}
