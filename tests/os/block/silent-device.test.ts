/** A device that does not answer is closed: a broken disk costs no open file for each look. */
import { expect, test } from 'bun:test'
import { type Device, probeDevice } from '../../../src/os/block/device.ts'

const never = new Promise<never>(() => {})

/** A device whose reads come to nothing, and how often it was closed. */
function silentDevice(read: () => Promise<Buffer> = () => never) {
  let closed = 0
  const device = { size: 1 << 20, sectorSize: 512, read, close: async () => void closed++ } as unknown as Device
  return { device, closed: () => closed }
}

/** A time limit that the test ends. */
function limit() {
  const { promise: late, reject } = Promise.withResolvers<never>()
  return { late, over: () => reject(new Error('no answer')) }
}

test('a device is closed while its read still goes on', async () => {
  const { device, closed } = silentDevice()
  const { late, over } = limit()
  const probing = probeDevice({ openDevice: async () => device }, '/dev/sda', late)
  await Promise.resolve()
  expect(closed()).toBe(0)
  over()
  await expect(probing).rejects.toThrow('no answer')
  expect(closed()).toBe(1)
})

test('a device that is opened only after the limit is closed too', async () => {
  const { device, closed } = silentDevice()
  const { late, over } = limit()
  const opening = Promise.withResolvers<Device>()
  const probing = probeDevice({ openDevice: () => opening.promise }, '/dev/sda', late)
  over()
  late.catch(() => {})
  await Bun.sleep(0)
  opening.resolve(device)
  await expect(probing).rejects.toThrow('no answer')
  expect(closed()).toBe(1)
})

test('a read that fails after the limit harms nobody', async () => {
  const reading = Promise.withResolvers<Buffer>()
  const { device, closed } = silentDevice(() => reading.promise)
  const { late, over } = limit()
  const probing = probeDevice({ openDevice: async () => device }, '/dev/sda', late)
  over()
  await expect(probing).rejects.toThrow('no answer')
  const unhandled: unknown[] = []
  const note = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', note)
  reading.reject(new Error('EIO'))
  await Bun.sleep(5)
  process.off('unhandledRejection', note)
  expect(unhandled).toEqual([])
  expect(closed()).toBe(1)
})

test('a device that cannot be read is closed', async () => {
  const { device, closed } = silentDevice(() => Promise.reject(new Error('EIO')))
  await expect(probeDevice({ openDevice: async () => device }, '/dev/sda')).rejects.toThrow('EIO')
  expect(closed()).toBe(1)
})
