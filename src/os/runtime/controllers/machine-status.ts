import { background } from '../../../cosi/background.ts'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Machine } from '../../area.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { NodeStatus } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { StaticPodStatus } from '../../k8s/resources/static-pod.ts'
import type { SequenceName } from '../../lifecycle/sequencer.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { TimeStatus } from '../../time/resources/time-status.ts'
import { MachineStatus } from '../resources/machine-status.ts'
import { MaintenanceServiceRequest } from '../resources/maintenance-service.ts'
import { Service } from '../resources/service.ts'

type Stage = SpecOf<typeof MachineStatus>['stage']

const stages: Partial<Record<SequenceName, Stage>> = {
  initialize: 'booting',
  boot: 'booting',
  install: 'installing',
  reboot: 'rebooting',
  shutdown: 'shutting down',
  reset: 'resetting',
  upgrade: 'upgrading',
  stageUpgrade: 'upgrading',
  maintenanceUpgrade: 'upgrading',
}

/** The stage of the machine, and everything that keeps it from being ready. */
export const observeMachineStatus = ({ events, sequencer }: Pick<Machine, 'events' | 'sequencer'>): Controller =>
  defineController({
    name: 'runtime.MachineStatusController',
    inputs: {
      time: weak(TimeStatus),
      network: weak(NetworkStatus),
      services: weak(Service),
      pods: weak(StaticPodStatus),
      type: weak(MachineType),
      nodename: weak(Nodename),
      node: weak(NodeStatus),
      maintenance: weak(MaintenanceServiceRequest),
    },
    outputs: { status: exclusive(MachineStatus) },
    start({ wake, signal, log }) {
      const follow = async () => {
        for await (const { type } of events.follow({}, signal)) if (type === 'machine.SequenceEvent') wake()
      }
      background(follow, log, 'following events failed')
    },
    reconcile({ time, network, services, pods, type, nodename, node, maintenance, status }) {
      const unmetConditions: { name: string; reason: string }[] = []
      const unmet = (name: string, reason: string) => unmetConditions.push({ name, reason })
      if (!time.get('node')?.spec.synced) unmet('time', 'time is not synced')
      const net = network.get('status')?.spec
      if (!net) unmet('network', 'no network status is available')
      else {
        const missing = [
          net.addressReady ? '' : 'address',
          net.connectivityReady ? '' : 'connectivity',
          net.hostnameReady ? '' : 'hostname',
          net.etcFilesReady ? '' : 'etc-files',
        ].filter(Boolean)
        if (missing.length > 0) unmet('network', `waiting on: ${missing.join(', ')}`)
      }
      const ill = services.list().filter(({ spec }) => spec.running && !spec.healthy && !spec.unknown)
      const known = type.get('machine-type')?.spec
      const absent = known ? wanted(known).filter((id) => !services.get(id)?.spec.running) : []
      const problems = [...absent.map((id) => `${id} not running`), ...ill.map(({ metadata }) => `${metadata.id} not healthy`)]
      if (problems.length > 0) unmet('services', problems.join(', '))
      const name = nodename.get('nodename')?.spec
      if (name && !name.skipNodeRegistration) {
        const seen = node.get(name.nodename)?.spec
        if (!seen) unmet('nodeReady', `node "${name.nodename}" status is not available yet`)
        else if (!seen.nodeReady) unmet('nodeReady', `node "${name.nodename}" is not ready`)
      }
      if (type.get('machine-type')?.spec !== 'worker') {
        const unready = pods.list().filter(({ spec }) => !isReady(spec))
        if (unready.length > 0) unmet('staticPods', unready.map(({ metadata }) => `${metadata.id} not ready`).join(', '))
      }
      const stage = maintenance.get('maintenance') ? 'maintenance' : (stages[sequencer.running ?? 'noop'] ?? 'running')
      const spec = { stage, status: { ready: unmetConditions.length === 0, unmetConditions } }
      if (!Bun.deepEquals(status.get('machine')?.spec, spec))
        events.publish('machine.MachineStatusEvent', {
          stage: stageNumbers[stage],
          status: { ready: spec.status.ready, unmetConditions },
        })
      status.put('machine', spec)
    },
  })

const stageNumbers: Record<Stage, number> = {
  unknown: 0,
  booting: 1,
  installing: 2,
  maintenance: 3,
  running: 4,
  rebooting: 5,
  'shutting down': 6,
  resetting: 7,
  upgrading: 8,
}

function wanted(type: SpecOf<typeof MachineType>): string[] {
  return ['apid', 'machined', 'kubelet', 'cri', ...(type === 'worker' ? [] : ['etcd', 'trustd'])]
}

function isReady(status: unknown): boolean {
  const conditions = (status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions ?? []
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}
