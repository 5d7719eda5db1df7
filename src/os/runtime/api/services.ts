import { toTimestamp } from '../../../rpc/proto-time.ts'
import { type Method, operators, readers, unary } from '../../../rpc/server/method.ts'
import type { OperatorAction } from '../../../supervise/definition.ts'
import type { ServiceSnapshot } from '../../../supervise/snapshot.ts'
import type { Machine } from '../../area.ts'
import { healthMessage } from '../service-health.ts'

/** The services of the machine, and starting, stopping and restarting those that allow it. */
export function serviceMethods({ supervisor }: Pick<Machine, 'supervisor'>): Method[] {
  const operate = async (id: string, action: OperatorAction) => ({ messages: [{ resp: await supervisor.operate(id, action) }] })
  return [
    unary('machine.MachineService/ServiceList', readers, () => ({ messages: [{ services: supervisor.list().map(serviceMessage) }] })),
    unary('machine.MachineService/ServiceStart', operators, ({ id }) => operate(id, 'start')),
    unary('machine.MachineService/ServiceStop', operators, ({ id }) => operate(id, 'stop')),
    unary('machine.MachineService/ServiceRestart', operators, ({ id }) => operate(id, 'restart')),
  ]
}

function serviceMessage({ id, state, events, health }: ServiceSnapshot) {
  return {
    id,
    state,
    events: { events: events.map(({ message, state: at, time }) => ({ msg: message, state: at, ts: toTimestamp(time) })) },
    health: healthMessage(health),
  }
}
