// Asks a resource API for everything; run as a service itself would, with nothing but the runtime at hand.
const http2 = require('node:http2')
const net = require('node:net')

const session = http2.connect('http://probe', { createConnection: () => net.connect(process.env.PROBE_SOCKET) })
session.on('error', (error) => {
  console.log(JSON.stringify({ error: String(error) }))
  process.exit(1)
})

/** A call whose request has only texts, by field number from 1; answers the status of gRPC. */
function call(method, ...texts) {
  const fields = texts.flatMap((text, i) => (text ? [Buffer.from([((i + 1) << 3) | 2, text.length]), Buffer.from(text)] : []))
  const message = Buffer.concat(fields)
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return new Promise((resolve) => {
    const stream = session.request({ ':method': 'POST', ':path': `/${method}`, 'content-type': 'application/grpc', te: 'trailers' })
    let status = -1
    const take = (headers) => {
      if (headers['grpc-status'] !== undefined) status = Number(headers['grpc-status'])
    }
    stream
      .on('response', take)
      .on('trailers', take)
      .on('data', () => {})
    stream.on('error', () => {}).on('close', () => resolve(status))
    stream.end(Buffer.concat([head, message]))
  })
}

const state = 'cosi.resource.State'
const answers = { uid: process.getuid(), get: {}, list: {}, watch: {}, write: {} }
for (const [namespace, type, id] of JSON.parse(process.env.PROBE_TYPES)) {
  answers.get[type] = await call(`${state}/Get`, namespace, type, id)
  answers.list[type] = await call(`${state}/List`, namespace, type)
}
const [namespace, type] = ['network', 'NodeAddresses.net.talos.dev']
for (const verb of ['Create', 'Update']) answers.write[verb] = await call(`${state}/${verb}`)
answers.write.Destroy = await call(`${state}/Destroy`, namespace, type, 'current')
answers.other = await call('machine.MachineService/Version')
console.log(JSON.stringify(answers))
process.exit(0)
