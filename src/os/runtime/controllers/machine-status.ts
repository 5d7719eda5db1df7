import { background } from '../../../cosi/background.ts'
import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Machine } from '../../area.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { NodeStatus } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { StaticPodStatus } from '../../k8s/resources/static-pod.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import type { SequenceName } from '../../sequences.ts'
import { TimeStatus } from '../../time/resources/time-status.ts'
import { MachineStatus } from '../resources/machine-status.ts'
import { MaintenanceServiceRequest } from '../resources/maintenance-service.ts'
import { Service } from '../resources/service.ts'
import { unmetConditions } from '../unmet-conditions.ts'

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
      machineType: weak(MachineType),
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
    reconcile({ maintenance, status, ...readers }) {
      const unmet = unmetConditions(readers).map(({ name, reason }) => ({ name, reason }))
      const stage = maintenance.get('maintenance') ? 'maintenance' : (stages[sequencer.running ?? 'noop'] ?? 'running')
      const spec = { stage, status: { ready: unmet.length === 0, unmetConditions: unmet } }
      if (!Bun.deepEquals(status.get('machine')?.spec, spec))
        events.publish('machine.MachineStatusEvent', { stage: stageNumbers[stage], status: spec.status })
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
