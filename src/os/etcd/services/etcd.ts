import type { ServiceDefinition, StoreView } from '../../../supervise/definition.ts'
import type { Machine } from '../../area.ts'
import { criDaemon } from '../../cri/daemons.ts'
import { ensureImage } from '../../cri/ensure-image.ts'
import { fullReference } from '../../cri/image-table.ts'
import { bindMount, serviceContainer } from '../../cri/service-container.ts'
import { networkConditions, timeConditions } from '../../network/conditions.ts'
import { operatorEnvironment } from '../../runtime/service-environment.ts'
import { dataFolder, etcdUid, secretsFolder } from '../arguments.ts'
import { etcdArguments, etcdHealth } from '../membership.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'
import { PKIStatus } from '../resources/pki-status.ts'

function wait(store: StoreView): string[] {
  const spec = store.get(EtcdSpec, 'etcd') ? [] : ['etcd spec']
  const pki = store.get(PKIStatus, 'etcd')?.spec.ready ? [] : ['etcd certificates']
  return [...timeConditions(store), ...networkConditions(store, ['address', 'hostname', 'etcfiles']), ...spec, ...pki]
}

/** The cluster's memory. */
export const etcdService = (machine: Machine): ServiceDefinition => {
  const image = () => machine.store.get(EtcdSpec, 'etcd')!.spec.image
  let args: string[] = []
  return {
    id: 'etcd',
    dependsOn: ['cri', 'registryd'],
    wait,
    async prepare(life) {
      // The image comes first, so that a cluster begins as soon as it is ordered to.
      await ensureImage(machine.kernel, image(), life)
      const note = (message: string) => life.note(message.charAt(0).toUpperCase() + message.slice(1))
      args = await etcdArguments(machine, { signal: life.signal, note })
    },
    runner: serviceContainer(
      machine,
      criDaemon,
      () => ({ image: fullReference(image()) }),
      ({ store }, contents) => ({
        args: [...(contents?.entrypoint.length ? contents.entrypoint : ['/usr/local/bin/etcd']), ...args],
        env: [...(contents?.env ?? []), ...operatorEnvironment(store)],
        uid: etcdUid,
        mounts: [bindMount(dataFolder, { writable: true }), bindMount(secretsFolder)],
      }),
    ),
    // The API server's pod waits for the first good answer.
    health: { check: (signal) => etcdHealth(machine, signal), initialDelay: 5000, period: 20_000, timeout: 15_000 },
    restart: 'always',
    oom: -998,
    cgroup: '/podruntime/etcd',
    stopTimeout: 30_000,
    operator: ['restart'],
  }
}
