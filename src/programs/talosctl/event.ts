/** Events of a machine, taken apart for people. */

import { unpackAny } from '../../rpc/client/any.ts'
import { ichor, machine as wire } from '../../rpc/enums.ts'
import type { google, machine, ichor as messages } from '../../rpc/messages.ts'
import type { Cluster } from './cluster.ts'
import { humanSize } from './output/units.ts'

/** One line about an event. */
export interface EventText {
  readonly source: string
  readonly message: string
}

/** The stage of a machine, when an event reports it. */
export function machineStatus(data: google.protobuf.Any | undefined): machine.MachineStatusEvent | undefined {
  return data ? unpackAny<machine.MachineStatusEvent>('machine.MachineStatusEvent', data) : undefined
}

/** Why a sequence of the machine ended before its goal, when an event reports it. */
export function sequenceFailure(data: google.protobuf.Any | undefined): string | undefined {
  const event = data && unpackAny<machine.SequenceEvent>('machine.SequenceEvent', data)
  return event?.error ? `sequence ${event.sequence} failed: ${event.error.message}` : undefined
}

/** The name of a machine's stage. */
function stageName(stage: number): string {
  return nameOf(wire.MachineStatusEvent.MachineStage, stage)
}

/** The events of a machine, without the empty one with which each stream begins. */
export async function* eventsOf(
  cluster: Cluster,
  request: Partial<machine.EventsRequest>,
  options: Parameters<Cluster['stream']>[2] = {},
): AsyncGenerator<machine.Event, void> {
  for await (const event of cluster.stream('machine.MachineService/Events', request, options)) if (!isFirst(event.data)) yield event
}

const isFirst = (data: google.protobuf.Any | undefined): boolean => !data?.type_url

/** The subject of an event and its message. */
export function describeEvent(data: google.protobuf.Any | undefined): EventText {
  if (!data || isFirst(data)) return { source: '', message: '' }
  const kind = data.type_url.slice(data.type_url.lastIndexOf('/') + 1)
  const describe = kinds[kind]
  return describe ? describe(data) : { source: '', message: `${data.value.length} bytes` }
}

const kinds: Record<string, (data: google.protobuf.Any) => EventText> = {
  'machine.SequenceEvent': on<machine.SequenceEvent>('machine.SequenceEvent', ({ sequence, action, error }) => ({
    source: sequence,
    message: error ? `error: ${error.message}` : nameOf(wire.SequenceEvent.Action, action),
  })),
  'machine.PhaseEvent': on<machine.PhaseEvent>('machine.PhaseEvent', ({ phase, action }) => ({
    source: phase,
    message: nameOf(wire.PhaseEvent.Action, action),
  })),
  'machine.TaskEvent': on<machine.TaskEvent>('machine.TaskEvent', ({ task, action }) => ({
    source: task,
    message: nameOf(wire.TaskEvent.Action, action),
  })),
  'machine.ServiceStateEvent': on<machine.ServiceStateEvent>('machine.ServiceStateEvent', ({ service, action, message }) => ({
    source: service,
    message: `${nameOf(wire.ServiceStateEvent.Action, action)}: ${message}`,
  })),
  'ichor.v1.EtcdUpkeepEvent': on<messages.v1.EtcdUpkeepEvent>('ichor.v1.EtcdUpkeepEvent', ({ action, member, before, after, quota }) => ({
    source: member || 'etcd',
    message: `${nameOf(ichor.v1.EtcdUpkeepEvent.Action, action)}: ${humanSize(before)} before, ${humanSize(after)} after, quota ${humanSize(quota)}`,
  })),
  'ichor.v1.EtcdBackupEvent': on<messages.v1.EtcdBackupEvent>('ichor.v1.EtcdBackupEvent', ({ action, name, target, error }) => ({
    source: target || 'etcd',
    message: [`${nameOf(ichor.v1.EtcdBackupEvent.Action, action)}:`, name, error].filter(Boolean).join(' '),
  })),
  'ichor.v1.EtcdRepairEvent': on<messages.v1.EtcdRepairEvent>('ichor.v1.EtcdRepairEvent', ({ action, member, reason, kept }) => ({
    source: member,
    message: `${nameOf(ichor.v1.EtcdRepairEvent.Action, action)}: ${reason}, data in ${kept}`,
  })),
  'machine.ConfigLoadErrorEvent': on<machine.ConfigLoadErrorEvent>('machine.ConfigLoadErrorEvent', ({ error }) => ({
    source: 'error',
    message: error,
  })),
  'machine.ConfigValidationErrorEvent': on<machine.ConfigValidationErrorEvent>('machine.ConfigValidationErrorEvent', ({ error }) => ({
    source: 'error',
    message: error,
  })),
  'machine.AddressEvent': on<machine.AddressEvent>('machine.AddressEvent', ({ hostname, addresses }) => ({
    source: hostname,
    message: `ADDRESSES: ${addresses.join(',')}`,
  })),
  'machine.RestartEvent': on<machine.RestartEvent>('machine.RestartEvent', ({ cmd }) => ({ source: 'reboot', message: String(cmd) })),
  'machine.MachineStatusEvent': on<machine.MachineStatusEvent>('machine.MachineStatusEvent', ({ stage, status }) => ({
    source: stageName(stage),
    message: `ready: ${status?.ready ?? false}, unmet conditions: [${(status?.unmetConditions ?? []).map(({ name }) => name).join(' ')}]`,
  })),
}

function on<Event>(name: string, describe: (event: Event) => EventText): (data: google.protobuf.Any) => EventText {
  return (data) => {
    const event = unpackAny<Event>(name, data)
    return event ? describe(event) : { source: '', message: '' }
  }
}

function nameOf(values: Readonly<Record<string, number>>, value: number): string {
  return Object.keys(values).find((name) => values[name] === value) ?? String(value)
}
