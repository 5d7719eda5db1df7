import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import type { Machine } from '../../area.ts'
import { bindMount, criDaemon, ensureImage, fullReference, operatorEnvironment, serviceContainer } from '../../cri/public.ts'
import { ArgumentError, pullError, settingsAnnotation } from '../../k8s/public.ts'
import { networkConditions, timeConditions } from '../../network/public.ts'
import { dataFolder, etcdUid, secretsFolder } from '../arguments.ts'
import type { Bootstrap } from '../bootstrap.ts'
import { etcdArguments, etcdHealth } from '../membership.ts'
import type { Repair } from '../repair/repair.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'
import { PKIStatus } from '../resources/pki-status.ts'
import { EtcdStarts } from '../starts.ts'

function wait(store: StoreView): string[] {
  const spec = store.get(EtcdSpec, 'etcd') ? [] : ['etcd spec']
  const pki = store.get(PKIStatus, 'etcd')?.spec.ready ? [] : ['etcd certificates']
  return [...timeConditions(store), ...networkConditions(store, ['address', 'hostname', 'etcfiles']), ...spec, ...pki]
}

/** The etcd service. */
export const etcdService = (machine: Machine, bootstrap: Bootstrap, repair: Repair): ServiceDefinition => {
  const starts = new EtcdStarts(machine)
  let prepared = { settings: '', image: '', args: [] as string[] }
  return {
    id: 'etcd',
    dependsOn: ['cri', 'registryd'],
    wait,
    async prepare(context) {
      const { spec, metadata } = await machine.store.until(EtcdSpec, 'etcd', undefined, { signal: context.signal })
      const { image } = spec
      const settings = metadata.annotations[settingsAnnotation] ?? ''
      const failed = (error: string) => {
        if (!context.signal.aborted) starts.failed(settings, error)
      }
      starts.begin({ settings, image })
      // The image is pulled first, so that a bootstrap starts at once when it is ordered.
      await ensureImage(machine.images, image, context).catch((error: unknown) => {
        failed(pullError(image, error))
        throw error
      })
      starts.at(settings, 'data')
      const note = (message: string) => context.note(message.charAt(0).toUpperCase() + message.slice(1))
      try {
        repair.restore()
        const { signal } = context
        const putAside = () => repair.putAside(spec, { signal, note })
        prepared = { settings, image, args: await etcdArguments(machine, spec, { signal, note, bootstrap, putAside }) }
      } catch (error) {
        if (error instanceof ArgumentError) failed(error.message)
        throw error
      }
    },
    runner: starts.counted(
      repair.watching(
        serviceContainer(
          machine,
          criDaemon,
          () => ({ image: fullReference(prepared.image) }),
          ({ store }, contents) => ({
            args: [...(contents?.entrypoint.length ? contents.entrypoint : ['/usr/local/bin/etcd']), ...prepared.args],
            env: [...(contents?.env ?? []), ...operatorEnvironment(store)],
            uid: etcdUid,
            mounts: [bindMount(dataFolder, { writable: true }), bindMount(secretsFolder)],
          }),
        ),
      ),
      () => prepared.settings,
    ),
    // The API server's pod waits for the first successful health check.
    health: { check: (signal) => etcdHealth(machine, signal), initialDelay: 5000, period: 20_000, timeout: 15_000 },
    restart: 'always',
    oom: -998,
    cgroup: '/podruntime/etcd',
    domain: 'etcd_t',
    stopTimeout: 30_000,
    operator: ['restart'],
  }
}
