import { expect, test } from 'bun:test'
import { BodyTooLarge, boundedBody } from '../../../src/wire/http/bounded-body.ts'

test('a body within the limit is returned whole, none is empty', async () => {
  expect((await boundedBody(new Response('hello'), 5)).toString()).toBe('hello')
  expect((await boundedBody(new Response(null), 5)).length).toBe(0)
})

test('a larger body is not read to its end', async () => {
  let sent = 0
  let cancelled = false
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent++
      controller.enqueue(new Uint8Array(1000))
    },
    cancel() {
      cancelled = true
    },
  })
  await expect(boundedBody(new Response(endless), 4500)).rejects.toThrow(new BodyTooLarge(4500))
  expect(cancelled).toBe(true)
  expect(sent).toBeLessThan(10)
})

test('an error of the connection is passed on', async () => {
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.error(new Error('connection reset'))
    },
  })
  await expect(boundedBody(new Response(broken), 5)).rejects.toThrow('connection reset')
})
