import { expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { troubledDeliveries } from '../../../src/os/diagnosis/deliveries.ts'
import { DeliveryStatus } from '../../../src/os/telemetry/resources/delivery-status.ts'

const status = {
  source: 'logs' as const,
  destination: 'tcp://10.0.0.9:514',
  connected: true,
  sent: 3,
  behind: 0,
  dropped: 0,
  droppedBytes: 0,
  losing: false,
  lastError: '',
  positions: {},
}

test('receivers that take nothing or lost something are causes, others are not', () => {
  const store = new Store()
  store.put(DeliveryStatus, 'well', status)
  store.put(DeliveryStatus, 'new', { ...status, connected: false })
  expect(troubledDeliveries(store)).toEqual([])
  store.put(DeliveryStatus, 'gone', { ...status, connected: false, behind: 70, lastError: 'connection refused' })
  store.put(DeliveryStatus, 'lost', { ...status, source: 'kernel', losing: true, dropped: 4 })
  expect(troubledDeliveries(store).map(({ kind, subject, sentence, error }) => [kind, subject, sentence, error])).toEqual([
    [
      'outside',
      'log destination tcp://10.0.0.9:514',
      'it takes nothing, and 70 bytes wait: check the receiver, the route to it, and machine.logging.destinations',
      'connection refused',
    ],
    ['unhealthy', 'kernel log destination tcp://10.0.0.9:514', '4 records were lost before they could be sent', undefined],
  ])
})
