// Without this the page works as well: it adds the progress of a build, checksums in place, and buttons that copy.
for (const button of document.querySelectorAll('button[data-copy]')) {
  button.hidden = !navigator.clipboard
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim())
    button.textContent = 'Copied'
  })
}

const size = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`

async function build(button) {
  const { url } = button.dataset
  const output = button.parentElement.querySelector('output')
  const started = performance.now()
  const show = () => {
    output.textContent = `Building for ${Math.round((performance.now() - started) / 1000)} s`
  }
  button.disabled = true
  show()
  const timer = setInterval(show, 1000)
  try {
    // The answer to HEAD comes once the file is built; a checksum needs all of it.
    const head = await fetch(url, { method: 'HEAD' })
    const sum = head.ok ? await fetch(`${url}.sha256`) : await fetch(url)
    const text = await sum.text()
    if (!sum.ok) throw new Error(text.trim())
    output.textContent = `Built, ${size(Number(head.headers.get('content-length')))}. SHA-256 ${text.split(' ')[0]}`
  } catch (error) {
    output.textContent = error.message
    button.disabled = false
  } finally {
    clearInterval(timer)
  }
}

for (const button of document.querySelectorAll('button[data-url]')) {
  button.hidden = false
  button.addEventListener('click', () => build(button))
}
