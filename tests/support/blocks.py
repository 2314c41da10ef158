"""A block over a floor, as the simplest scene there is."""

import mujoco

BLOCK = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 .1" {floor}/>
    <body name="block" pos="0 0 {height}">
      <freejoint/>
      <geom name="side" type="{shape}" size=".05 .05 .05" mass="1" {geom}/>
    </body>
    <body name="post" pos="2 0 1"><geom size=".1"/></body>
  </worldbody>
</mujoco>"""


def block_model(shape="box", floor="", geom="", height=0.05, gravity=(0.0, 0.0, -9.81)):
    text = BLOCK.format(shape=shape, floor=floor, geom=geom, height=height)
    model = mujoco.MjModel.from_xml_string(text)
    model.opt.gravity[:] = gravity
    return model, text


def loader(model):
    def load():
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        return model, data, None

    return load
