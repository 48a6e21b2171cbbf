// Preloaded into Node.js: a server that names no address listens on the loopback alone. This is the step after an address
// was looked up, so that listening begins as soon as it did.
const { Server } = require('node:net')
const everywhere = [undefined, null, '', '::', '0.0.0.0']
const bind = Server.prototype._listen2
Server.prototype._listen2 = function bindHere (address, port, family, ...rest) {
  const isOpen = port >= 0 && everywhere.includes(address)
  return isOpen ? bind.call(this, '127.0.0.1', port, 4, ...rest) : bind.call(this, address, port, family, ...rest)
}
